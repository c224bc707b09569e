// SPDX-License-Identifier: Apache-2.0
//
// CriServer: the other end of a CriExchange. It speaks HTTP/2 by a server's session of nghttp2, and gRPC as far as this
// test needs it.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/handle.h"
#include "base/protobuf_writer.h"
#include "test/catch.h"

namespace flamed::test {

inline constexpr const char* kContainerStatus = "/runtime.v1.RuntimeService/ContainerStatus";
inline constexpr const char* kSandboxStatus = "/runtime.v1.RuntimeService/PodSandboxStatus";

inline std::string field(std::uint32_t number, std::string_view value) {
  std::string out;
  ProtobufWriter(out).bytes(number, value);
  return out;
}
inline std::string label(std::string_view key, std::string_view value) { return field(1, key) + field(2, value); }

/// ContainerStatusResponse.
inline std::string container_response(const std::string& id, const std::string& name,
                                      const std::vector<std::pair<std::string, std::string>>& labels) {
  std::string status = field(1, id) + field(2, field(1, name)) + field(11, "a secret");
  for (const auto& [key, value] : labels) status += field(12, label(key, value));
  return field(1, status + field(13, label("io.kubernetes.pod.name", "a secret"))) +
         field(2, label("info", "a secret"));
}
/// PodSandboxStatusResponse.
inline std::string sandbox_response(const std::string& id, const std::string& pod, const std::string& name_space) {
  return field(1, field(1, id) + field(2, field(1, pod) + field(2, "u") + field(3, name_space)) +
                      field(7, label("io.kubernetes.container.name", "a secret")));
}
inline std::string framed(const std::string& message) {
  std::string head(5, '\0');
  for (std::size_t i = 0; i < 4; ++i) head[4 - i] = static_cast<char>(message.size() >> (8 * i));
  return head + message;
}

class CriServer {
 public:
  struct Reply {
    std::string body{};        ///< see framed()
    std::string status = "0";  ///< of gRPC; empty: none
  };
  /// By path; a call that is not there is answered with NotFound.
  explicit CriServer(std::map<std::string, Reply> replies) : replies_(std::move(replies)) {
    nghttp2_session_callbacks* callbacks = nullptr;
    ::nghttp2_session_callbacks_new(&callbacks);
    ::nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    ::nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    ::nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session* session = nullptr;
    ::nghttp2_session_server_new(&session, callbacks, this);
    ::nghttp2_session_callbacks_del(callbacks);
    session_.reset(session);
    ::nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, nullptr, 0);
  }

  struct Asked {
    std::map<std::string, std::string> headers{};
    std::string body{};
    const Reply* reply = nullptr;
    std::size_t sent = 0;
  };

  /// To everything that was asked.
  std::string answer(std::string_view question) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(question.data());
    const ssize_t taken = ::nghttp2_session_mem_recv(session_.get(), bytes, question.size());
    REQUIRE(taken == static_cast<ssize_t>(question.size()));
    return pending();
  }
  /// By stream.
  [[nodiscard]] const std::map<std::int32_t, Asked>& asked() const { return asked_; }

  [[nodiscard]] nghttp2_session* session() { return session_.get(); }
  std::string pending() {
    std::string out;
    for (const std::uint8_t* bytes = nullptr;;) {
      const ssize_t size = ::nghttp2_session_mem_send(session_.get(), &bytes);
      if (size <= 0) return out;
      out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
    }
  }

 private:
  static nghttp2_nv header(std::string_view name, std::string_view value) {
    const auto bytes = [](std::string_view text) {
      return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
    };
    return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
  }
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                       const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* self) {
    auto& headers = static_cast<CriServer*>(self)->asked_[frame->hd.stream_id].headers;
    headers[std::string(reinterpret_cast<const char*>(name), name_size)] =
        std::string(reinterpret_cast<const char*>(value), value_size);
    return 0;
  }
  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* data, std::size_t size,
                     void* self) {
    static_cast<CriServer*>(self)->asked_[stream].body.append(reinterpret_cast<const char*>(data), size);
    return 0;
  }
  static int on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* self) {
    if (frame->hd.type != NGHTTP2_DATA || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    auto& server = *static_cast<CriServer*>(self);
    Asked& asked = server.asked_[frame->hd.stream_id];
    static const Reply kNotFound{"", "5"};
    const auto found = server.replies_.find(asked.headers[":path"]);
    asked.reply = found == server.replies_.end() ? &kNotFound : &found->second;
    const nghttp2_nv headers[] = {header(":status", "200"), header("content-type", "application/grpc")};
    nghttp2_data_provider provider{};
    provider.source.ptr = &asked;
    provider.read_callback = read_body;
    return ::nghttp2_submit_response(session, frame->hd.stream_id, headers, 2, &provider);
  }
  static ssize_t read_body(nghttp2_session* session, std::int32_t stream, std::uint8_t* to, std::size_t room,
                           std::uint32_t* flags, nghttp2_data_source* source, void*) {
    auto& asked = *static_cast<Asked*>(source->ptr);
    const std::size_t size = std::min(room, asked.reply->body.size() - asked.sent);
    std::memcpy(to, asked.reply->body.data() + asked.sent, size);
    asked.sent += size;
    if (asked.sent < asked.reply->body.size()) return static_cast<ssize_t>(size);
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (!asked.reply->status.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const nghttp2_nv trailer = header("grpc-status", asked.reply->status);
      ::nghttp2_submit_trailer(session, stream, &trailer, 1);
    }
    return static_cast<ssize_t>(size);
  }

  const std::map<std::string, Reply> replies_;
  std::map<std::int32_t, Asked> asked_;
  Handle<nghttp2_session*, ::nghttp2_session_del> session_;
};

}  // namespace flamed::test
