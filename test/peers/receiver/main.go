// SPDX-License-Identifier: Apache-2.0

// What receives profiles in Pyroscope and in the OpenTelemetry collector, from their own Go modules: takes requests of
// flamed-push, and compares each with flamed's own answer about the same time.
//
//	receiver -listen ADDRESS -flamed URL -exe PATH -path PATH [-from MS]
//
// Each request must begin where the one before ended, and the first one not after -from. Ends after three requests that
// end after the start of this program, with 1 if any was not as flamed answers.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	profilev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/protobuf/proto"
)

const (
	wanted   = 3
	otlpPath = "/v1development/profiles"
)

var (
	listen = flag.String("listen", "", "address")
	flamed = flag.String("flamed", "", "flamed itself, for its own answers")
	exe    = flag.String("exe", "", "the program whose profiles are sent")
	path   = flag.String("path", "", "where requests are expected")
	from   = flag.Int64("from", math.MaxInt64, "since when everything has to come, in Unix milliseconds")
)

// received is one request, or why it could not be read.
type received struct {
	path         string
	fromMs, toMs int64
	service      string
	stacks       map[string]int64
	err          error
}

// one returns the only element.
func one[T any](what string, list []T) (T, error) {
	if len(list) == 1 {
		return list[0], nil
	}
	var none T
	return none, fmt.Errorf("%d %s instead of one", len(list), what)
}

func unpack(packed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

func readPush(request *pushv1.PushRequest) (got received, err error) {
	series, err := one("series", request.Series)
	if err != nil {
		return got, err
	}
	for _, label := range series.Labels {
		if label.Name == "service_name" {
			got.service = label.Value
		}
	}
	sample, err := one("profiles", series.Samples)
	if err != nil {
		return got, err
	}
	encoded, err := unpack(sample.RawProfile)
	if err != nil {
		return got, err
	}
	var profile profilev1.Profile
	if err := proto.Unmarshal(encoded, &profile); err != nil {
		return got, err
	}
	names := map[uint64]string{}
	for _, function := range profile.Function {
		names[function.Id] = profile.StringTable[function.Name]
	}
	locations := map[uint64]*profilev1.Location{}
	for _, location := range profile.Location {
		locations[location.Id] = location
	}
	got.stacks = map[string]int64{}
	for _, sample := range profile.Sample {
		stack := ""
		for _, location := range sample.LocationId {
			for _, line := range locations[location].Line {
				stack = names[line.FunctionId] + ";" + stack
			}
		}
		got.stacks[strings.TrimSuffix(stack, ";")] += sample.Value[0]
	}
	got.fromMs = profile.TimeNanos / 1e6
	got.toMs = (profile.TimeNanos + profile.DurationNanos) / 1e6
	return got, nil
}

func readOtlp(encoded []byte) (got received, err error) {
	request := pprofileotlp.NewExportRequest()
	if err := request.UnmarshalProto(encoded); err != nil {
		return got, err
	}
	dictionary := request.Profiles().Dictionary()
	resources := request.Profiles().ResourceProfiles()
	if resources.Len() != 1 || resources.At(0).ScopeProfiles().Len() != 1 ||
		resources.At(0).ScopeProfiles().At(0).Profiles().Len() != 1 {
		return got, errors.New("not one profile")
	}
	service, _ := resources.At(0).Resource().Attributes().Get("service.name")
	profile := resources.At(0).ScopeProfiles().At(0).Profiles().At(0)
	got.service = service.Str()
	got.stacks = map[string]int64{}
	for i := range profile.Samples().Len() {
		sample := profile.Samples().At(i)
		if sample.Values().Len() != 1 {
			return got, fmt.Errorf("a sample has %d values", sample.Values().Len())
		}
		got.stacks[foldedStack(dictionary, sample.StackIndex())] += sample.Values().At(0)
	}
	got.fromMs = int64(profile.Time()) / 1e6
	got.toMs = (int64(profile.Time()) + int64(profile.DurationNano())) / 1e6
	return got, nil
}

func foldedStack(dictionary pprofile.ProfilesDictionary, index int32) string {
	folded := ""
	for _, location := range dictionary.StackTable().At(int(index)).LocationIndices().AsRaw() {
		lines := dictionary.LocationTable().At(int(location)).Lines()
		for i := range lines.Len() {
			function := dictionary.FunctionTable().At(int(lines.At(i).FunctionIndex()))
			folded = dictionary.StringTable().At(int(function.NameStrindex())) + ";" + folded
		}
	}
	return strings.TrimSuffix(folded, ";")
}

// pusher is the server of Pyroscope's push client.
type pusher struct{ got chan received }

func (p pusher) Push(_ context.Context, request *connect.Request[pushv1.PushRequest]) (*connect.Response[pushv1.PushResponse], error) {
	got, err := readPush(request.Msg)
	got.path, got.err = pushv1connect.PusherServicePushProcedure, err
	p.got <- got
	return connect.NewResponse(&pushv1.PushResponse{}), nil
}

// takeOtlp answers as the collector's receiver does.
func takeOtlp(all chan received) http.HandlerFunc {
	return func(answer http.ResponseWriter, request *http.Request) {
		packed, err := io.ReadAll(request.Body)
		var encoded []byte
		if err == nil {
			encoded, err = unpack(packed)
		}
		var got received
		if err == nil {
			got, err = readOtlp(encoded)
		}
		got.path, got.err = otlpPath, err
		all <- got
		body, _ := pprofileotlp.NewExportResponse().MarshalProto()
		answer.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = answer.Write(body)
	}
}

// foldedProfile of flamed itself: stack to samples.
func foldedProfile(fromMs, toMs int64) (map[string]int64, error) {
	target := fmt.Sprintf("%s/profile?format=folded&group=none&max_nodes=1000000&exe=%s&from=%d&to=%d", *flamed,
		url.QueryEscape(*exe), fromMs, toMs)
	answer, err := http.Get(target)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %s %w", target, answer.Status, body, err)
	}
	stacks := map[string]int64{}
	for _, line := range strings.Split(strings.TrimSpace(string(body)), "\n") {
		blank := strings.LastIndexByte(line, ' ')
		samples, err := strconv.ParseInt(line[blank+1:], 10, 64)
		if err != nil {
			return nil, err
		}
		stacks[line[:blank]] += samples
	}
	return stacks, nil
}

func check(got received) error {
	if got.err != nil {
		return got.err
	}
	if got.service == "" {
		return errors.New("no name of a service")
	}
	stacks, err := foldedProfile(got.fromMs, got.toMs)
	if err != nil {
		return err
	}
	if !maps.Equal(got.stacks, stacks) {
		return fmt.Errorf("got %v, flamed has %v", got.stacks, stacks)
	}
	samples := int64(0)
	for _, count := range stacks {
		samples += count
	}
	fmt.Printf("ok   %s: %s, %.3f s, %d stacks, %d samples\n", got.path, got.service, float64(got.toMs-got.fromMs)/1e3,
		len(stacks), samples)
	return nil
}

func main() {
	flag.Parse()
	all := make(chan received, 100)
	mux := http.NewServeMux()
	mux.Handle(pushv1connect.NewPusherServiceHandler(pusher{all}))
	mux.HandleFunc(otlpPath, takeOtlp(all))
	go func() {
		fmt.Fprintln(os.Stderr, http.ListenAndServe(*listen, mux))
		os.Exit(1)
	}()
	began := time.Now().UnixMilli()
	late := time.After(5 * time.Minute)
	var last received
	for missing := wanted; missing > 0; {
		select {
		case got := <-all:
			err := check(got)
			switch {
			case err != nil:
			case got.path != *path:
				err = errors.New("is not where requests are expected")
			case last.path == "" && got.fromMs > *from:
				err = fmt.Errorf("the first request begins %d ms late", got.fromMs-*from)
			case last.path != "" && got.fromMs != last.toMs:
				err = fmt.Errorf("%d ms are missing before %d", got.fromMs-last.toMs, got.fromMs)
			}
			if err != nil {
				fmt.Println("FAIL", got.path, err)
				os.Exit(1)
			}
			if last = got; got.toMs > began {
				missing--
			}
		case <-late:
			fmt.Println("FAIL nothing more came to", *path)
			os.Exit(1)
		}
	}
}
