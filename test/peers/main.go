// SPDX-License-Identifier: Apache-2.0

// The client that Grafana's Pyroscope data source is made of makes all of its calls, in both encodings, and compares the
// answers with flamed's own of the same window.
//
//	peers -url URL -token-file FILE -pid PID -from MS -to MS [-ca FILE]
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
)

const (
	cpu    = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
	stepMs = 5000
)

var (
	url       = flag.String("url", "", "flamed, or a proxy before it")
	direct    = flag.String("direct", "", "flamed itself, for its own answers")
	tokenFile = flag.String("token-file", "", "file whose first word is a token")
	caFile    = flag.String("ca", "", "certificate of the proxy")
	pid       = flag.Int("pid", 0, "a busy process")
	from      = flag.Int64("from", 0, "unix milliseconds, a multiple of 5 s")
	to        = flag.Int64("to", 0, "likewise")
)

var failures int

func check(what string, holds bool, details ...any) {
	if holds {
		return
	}
	failures++
	fmt.Println(append([]any{"FAIL", what}, details...)...)
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

// bearer sends a token, as Grafana does with httpHeaderName1.
type bearer struct {
	token string
	below http.RoundTripper
}

func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	if b.token != "" {
		request.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.below.RoundTrip(request)
}

func transport() http.RoundTripper {
	if *caFile == "" {
		return http.DefaultTransport
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must(os.ReadFile(*caFile)))
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
}

func clientWith(token string, options ...connect.ClientOption) querierv1connect.QuerierServiceClient {
	return querierv1connect.NewQuerierServiceClient(&http.Client{Transport: bearer{token, transport()}}, *url, options...)
}

// get asks flamed itself.
func get(target, token string) []byte {
	client := http.Client{Transport: bearer{token, http.DefaultTransport}}
	answer := must(client.Get(*direct + target))
	defer answer.Body.Close()
	body := must(io.ReadAll(answer.Body))
	if answer.StatusCode != http.StatusOK {
		must(0, fmt.Errorf("%s: %s: %s", target, answer.Status, body))
	}
	return body
}

type timeline struct {
	StartMs  int64 `json:"start_ms"`
	PeriodNs int64 `json:"period_ns"`
	Steps    struct {
		User   []int64 `json:"user_samples"`
		Kernel []int64 `json:"kernel_samples"`
	} `json:"steps"`
}

func timelineOf(selection, token string) timeline {
	var line timeline
	target := fmt.Sprintf("/timeline?step=5s&from=%d&to=%d%s", *from, *to, selection)
	must(0, json.Unmarshal(get(target, token), &line))
	return line
}

// points by the end of each step that has samples.
func (line timeline) points() map[int64]float64 {
	points := map[int64]float64{}
	for i := range line.Steps.User {
		if samples := line.Steps.User[i] + line.Steps.Kernel[i]; samples != 0 {
			points[line.StartMs+int64(i+1)*stepMs] = float64(samples * line.PeriodNs)
		}
	}
	return points
}

func pointsOf(series []*typesv1.Series) map[int64]float64 {
	points := map[int64]float64{}
	for _, one := range series {
		for _, point := range one.Points {
			points[point.Timestamp] += point.Value
		}
	}
	return points
}

// folded profile of flamed itself: stack to samples.
func foldedProfile(selection, token string) map[string]int64 {
	target := fmt.Sprintf("/profile?format=folded&group=none&max_nodes=1000000&from=%d&to=%d%s", *from, *to, selection)
	stacks := map[string]int64{}
	for _, line := range strings.Split(strings.TrimSpace(string(get(target, token))), "\n") {
		blank := strings.LastIndexByte(line, ' ')
		stacks[line[:blank]] += must(strconv.ParseInt(line[blank+1:], 10, 64))
	}
	return stacks
}

// foldedLevels reads a flame graph as Grafana does.
func foldedLevels(graph *querierv1.FlameGraph, periodNs int64) map[string]int64 {
	type bar struct {
		end  int64
		path string
	}
	stacks := map[string]int64{}
	callers := []bar{{graph.Total, ""}}
	for depth, level := range graph.Levels {
		var here []bar
		at, caller := int64(0), 0
		for i := 0; i < len(level.Values); i += 4 {
			at += level.Values[i]
			for at >= callers[caller].end && caller+1 < len(callers) {
				caller++
			}
			path := callers[caller].path
			if depth > 0 {
				path += ";" + strings.ReplaceAll(graph.Names[level.Values[i+3]], ";", ":")
			}
			if self := level.Values[i+2]; self != 0 {
				stacks[strings.TrimPrefix(path, ";")] += self / periodNs
			}
			at += level.Values[i+1]
			here = append(here, bar{at, path})
		}
		callers = here
	}
	return stacks
}

func ask[Q, A any](call func(context.Context, *connect.Request[Q]) (*connect.Response[A], error), request *Q) *A {
	return must(call(context.Background(), connect.NewRequest(request))).Msg
}

func code[Q, A any](call func(context.Context, *connect.Request[Q]) (*connect.Response[A], error), request *Q) connect.Code {
	_, err := call(context.Background(), connect.NewRequest(request))
	var refused *connect.Error
	if !errors.As(err, &refused) {
		return 0
	}
	return refused.Code()
}

func checkAnswers(client querierv1connect.QuerierServiceClient, token string) {
	one := fmt.Sprintf("&pid=%d", *pid)
	process := fmt.Sprintf("{pid=%q}", strconv.Itoa(*pid))
	most := int64(1_000_000)

	types := ask(client.ProfileTypes, &querierv1.ProfileTypesRequest{Start: 1000, End: 4000})
	check("profile types", len(types.ProfileTypes) > 0 && types.ProfileTypes[0].ID == cpu, types)

	names := ask(client.LabelNames, &typesv1.LabelNamesRequest{Matchers: []string{"{}"}, Start: *from, End: *to})
	check("label names", strings.Contains(strings.Join(names.Names, " "), "service_name"), names)
	variable := &typesv1.LabelNamesRequest{Matchers: []string{cpu + "{}"}, Start: *from, End: *to}
	check("label names of a variable", len(ask(client.LabelNames, variable).Names) == len(names.Names))

	values := ask(client.LabelValues,
		&typesv1.LabelValuesRequest{Name: "pid", Matchers: []string{process}, Start: *from, End: *to})
	check("label values", len(values.Names) == 1 && values.Names[0] == strconv.Itoa(*pid), values)

	sets := ask(client.Series, &querierv1.SeriesRequest{LabelNames: []string{"service_name", "__profile_type__"}})
	check("series without times", len(sets.LabelsSet) > 0, sets)

	stats := ask(client.GetProfileStats, &typesv1.GetProfileStatsRequest{})
	check("stats", stats.DataIngested && stats.OldestProfileTime <= *from && stats.NewestProfileTime >= *to, stats)

	selected := &querierv1.SelectSeriesRequest{ProfileTypeID: cpu, LabelSelector: process, Start: *from, End: *to, Step: 5}
	line := timelineOf(one, token)
	points := pointsOf(ask(client.SelectSeries, selected).Series)
	check("series of a process", len(points) > 0 && maps.Equal(points, line.points()), points, line.points())
	selected.LabelSelector = "{}"
	selected.GroupBy = []string{"service_name", "pid"}
	points = pointsOf(ask(client.SelectSeries, selected).Series)
	check("series of the machine", maps.Equal(points, timelineOf("", token).points()), points)

	stacks := &querierv1.SelectMergeStacktracesRequest{
		ProfileTypeID: cpu, LabelSelector: process, Start: *from, End: *to, MaxNodes: &most}
	graph := ask(client.SelectMergeStacktraces, stacks).Flamegraph
	check("flame graph", maps.Equal(foldedLevels(graph, line.PeriodNs), foldedProfile(one, token)),
		foldedLevels(graph, line.PeriodNs), foldedProfile(one, token))

	stacks.LabelSelector = `{pid="0"}`
	empty := ask(client.SelectMergeStacktraces, stacks).Flamegraph
	check("empty flame graph", empty.Total == 0 && len(empty.Names) == 1 && len(empty.Levels) == 1, empty)
	selected.LabelSelector = `{pid="0"}`
	check("empty series", len(ask(client.SelectSeries, selected).Series) == 0)
}

func checkErrors(client querierv1connect.QuerierServiceClient) {
	request := func(selector, profileType string, start, end int64, step float64) *querierv1.SelectSeriesRequest {
		return &querierv1.SelectSeriesRequest{
			ProfileTypeID: profileType, LabelSelector: selector, Start: start, End: end, Step: step}
	}
	for what, wrong := range map[string]*querierv1.SelectSeriesRequest{
		"empty selector":         request("", cpu, *from, *to, 5),
		"malformed selector":     request("{pid=}", cpu, *from, *to, 5),
		"malformed profile type": request("{}", "cpu", *from, *to, 5),
		"start after end":        request("{}", cpu, *to, *from, 5),
		"no step":                request("{}", cpu, *from, *to, 0),
	} {
		check(what, code(client.SelectSeries, wrong) == connect.CodeInvalidArgument)
	}
	check("other call", code(client.SelectHeatmap, &querierv1.SelectHeatmapRequest{}) == connect.CodeUnimplemented)
	if *tokenFile != "" {
		wrong := clientWith("not-one-of-the-tokens")
		check("wrong token", code(wrong.ProfileTypes, &querierv1.ProfileTypesRequest{}) == connect.CodeUnauthenticated)
	}
}

func main() {
	flag.Parse()
	token := ""
	if *tokenFile != "" {
		token = strings.Fields(string(must(os.ReadFile(*tokenFile))))[0]
	}
	encodings := map[string][]connect.ClientOption{
		"protobuf":              {},
		"protobuf, sent packed": {connect.WithSendGzip()},
		"JSON":                  {connect.WithProtoJSON()},
		"JSON, sent packed":     {connect.WithProtoJSON(), connect.WithSendGzip()},
	}
	for name, options := range encodings {
		fmt.Println("==", name)
		client := clientWith(token, options...)
		checkAnswers(client, token)
		checkErrors(client)
	}
	if failures != 0 {
		fmt.Println(failures, "failed")
		os.Exit(1)
	}
	fmt.Println("all calls agree")
}
