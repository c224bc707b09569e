// SPDX-License-Identifier: Apache-2.0

// A container engine with the server that is generated from the Container Runtime Interface itself. It knows one container
// and its pod's sandbox, both with a secret in every place that is no name.
//
//	cri -socket PATH -container ID -sandbox ID -secret-file FILE [-hangs]
//
// Prints the method of each call, a line each, and whether it was verbose. With -hangs no call is ever answered.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

var (
	socket     = flag.String("socket", "", "where to listen")
	container  = flag.String("container", "", "id of the container")
	sandbox    = flag.String("sandbox", "", "id of its pod's sandbox")
	secretFile = flag.String("secret-file", "", "has the text that may get nowhere")
	hangs      = flag.Bool("hangs", false, "answer no call")
)

var secret string

type engine struct {
	runtime.UnimplementedRuntimeServiceServer
}

func labels() map[string]string {
	return map[string]string{
		"io.kubernetes.pod.name":       "web-7d9-x2x",
		"io.kubernetes.pod.namespace":  "shop",
		"io.kubernetes.pod.uid":        "2f6a5c4e-0b1d-4c3f-9a8b-7e6d5c4b3a29",
		"io.kubernetes.container.name": "nginx",
		"token":                        secret,
	}
}

func (engine) ContainerStatus(_ context.Context, request *runtime.ContainerStatusRequest) (*runtime.ContainerStatusResponse, error) {
	fmt.Println("ContainerStatus verbose:", request.Verbose)
	if request.ContainerId != *container {
		return nil, status.Errorf(codes.NotFound, "an error occurred when try to find container %q: not found", request.ContainerId)
	}
	return &runtime.ContainerStatusResponse{
		Status: &runtime.ContainerStatus{
			Id:          *container,
			Metadata:    &runtime.ContainerMetadata{Name: "nginx", Attempt: 2},
			State:       runtime.ContainerState_CONTAINER_RUNNING,
			CreatedAt:   1,
			Image:       &runtime.ImageSpec{Image: "registry.example/" + secret, Annotations: map[string]string{"a": secret}},
			Message:     secret,
			Labels:      labels(),
			Annotations: map[string]string{"io.kubernetes.pod.name": secret, "kubectl.kubernetes.io/last-applied-configuration": secret},
			Mounts:      []*runtime.Mount{{ContainerPath: "/run/secrets", HostPath: "/" + secret}},
		},
		Info: map[string]string{"info": `{"config":{"envs":[{"key":"PASSWORD","value":"` + secret + `"}]}}`},
	}, nil
}

func (engine) PodSandboxStatus(_ context.Context, request *runtime.PodSandboxStatusRequest) (*runtime.PodSandboxStatusResponse, error) {
	fmt.Println("PodSandboxStatus verbose:", request.Verbose)
	if request.PodSandboxId != *sandbox {
		return nil, status.Errorf(codes.NotFound, "an error occurred when try to find sandbox: not found")
	}
	return &runtime.PodSandboxStatusResponse{
		Status: &runtime.PodSandboxStatus{
			Id:          *sandbox,
			Metadata:    &runtime.PodSandboxMetadata{Name: "web-7d9-x2x", Uid: "2f6a5c4e", Namespace: "shop", Attempt: 1},
			State:       runtime.PodSandboxState_SANDBOX_READY,
			Labels:      labels(),
			Annotations: map[string]string{"token": secret},
		},
		Info: map[string]string{"info": secret},
	}, nil
}

func main() {
	flag.Parse()
	text, err := os.ReadFile(*secretFile)
	if err != nil {
		log.Fatal(err)
	}
	secret = string(text)
	listener, err := net.Listen("unix", *socket)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(
		func(ctx context.Context, request any, info *grpc.UnaryServerInfo, answer grpc.UnaryHandler) (any, error) {
			fmt.Println(info.FullMethod)
			if *hangs {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return answer(ctx, request)
		}))
	runtime.RegisterRuntimeServiceServer(server, engine{})
	log.Fatal(server.Serve(listener))
}
