// SPDX-License-Identifier: Apache-2.0
//
// CriExchange: asks an engine of the Container Runtime Interface what a container is called, by the two calls that have
// the names: of a container, and of a pod's sandbox, the container that only holds the pod's namespaces.
//
//   flamed  preface, SETTINGS, WINDOW_UPDATE; on each of two streams HEADERS, DATA: ContainerStatus, PodSandboxStatus
//   engine  SETTINGS; on each stream HEADERS, DATA, HEADERS with grpc-status. Of DATA: 0, the size of a message in 4
//           bytes, most significant first, the message
//
// The question is complete before anything is answered, and nothing is sent later: no acknowledgement, no more room. So
// one process can send it, and another one, which need not be able to write to the engine, makes the same exchange
// again and lets it take the answer. Engines are patient: gRPC needs no acknowledgement within the second that this
// takes.
//
// Schema: k8s.io/cri-api, pkg/apis/runtime/v1/api.proto. One thread. Pure.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "symbolizer/model/container_file.h"

namespace flamed::symbolizer {

class CriExchange {
 public:
  explicit CriExchange(std::string_view id);
  ~CriExchange();
  CriExchange(const CriExchange&) = delete;
  CriExchange& operator=(const CriExchange&) = delete;

  [[nodiscard]] const std::string& question() const;

  /// Further bytes of the answer. An error: they are not what an engine answers.
  [[nodiscard]] Status take(std::string_view bytes);
  /// Nothing that comes could add to names().
  [[nodiscard]] bool is_over() const;
  /// As far as the answer has come. Empty if the engine knows neither such a container nor such a sandbox. A sandbox
  /// has no name but those of its pod.
  [[nodiscard]] Result<ContainerNames> names() const;

 private:
  struct Session;
  const std::unique_ptr<Session> session_;
};

}  // namespace flamed::symbolizer
