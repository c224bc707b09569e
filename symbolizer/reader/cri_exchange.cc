// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/cri_exchange.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>

#include "base/handle.h"
#include "base/protobuf_reader.h"
#include "base/protobuf_writer.h"
#include "symbolizer/reader/container_names.h"
#include "symbolizer/reader/engine_answer.h"

namespace flamed::symbolizer {
namespace {

/// What stands before a message: whether it is compressed, and its size.
constexpr std::size_t kMessageHeadBytes = 5;
/// More than gRPC sends.
constexpr std::uint32_t kMaxHeaderListBytes = 16 * 1024;

/// Of gRPC.
constexpr int kOk = 0;
/// NotFound, and Unknown, by which engines say the same that pass on the error of another one.
constexpr std::array kNotThere{5, 2};

namespace field {
constexpr std::uint32_t kAskedId = 1;
// Of ContainerStatusResponse and PodSandboxStatusResponse.
constexpr std::uint32_t kStatus = 1;
// Of ContainerStatus and PodSandboxStatus.
constexpr std::uint32_t kId = 1;
constexpr std::uint32_t kMetadata = 2;
constexpr std::uint32_t kContainerLabels = 12;
// Of ContainerMetadata and PodSandboxMetadata.
constexpr std::uint32_t kName = 1;
constexpr std::uint32_t kNamespace = 3;
// Of an entry of a map.
constexpr std::uint32_t kKey = 1;
constexpr std::uint32_t kValue = 2;
}  // namespace field

using SessionHandle = Handle<nghttp2_session*, ::nghttp2_session_del>;
using Callbacks = Handle<nghttp2_session_callbacks*, ::nghttp2_session_callbacks_del>;
using Option = Handle<nghttp2_option*, ::nghttp2_option_del>;

struct Call {
  bool is_sandbox;
  std::string_view path;
  std::int32_t stream = 0;
  std::string_view unsent{};  ///< of the question
  std::string body{};         ///< of the answer, as far as it has come
  std::optional<int> status{};
  std::optional<Result<ContainerNames>> names{};  ///< once the call is over
};

/// Calls `visit` with the number and the bytes of each string and message in `message`, until it returns false. False
/// also if the message is damaged.
template <typename Visit>
bool visit_fields(std::string_view message, Visit visit) {
  ProtobufReader reader(message);
  for (;;) {
    const Result<std::optional<ProtobufField>> field = reader.next();
    if (!field) return false;
    if (!field->has_value()) return true;
    if ((*field)->type == WireType::kBytes && !visit((*field)->number, (*field)->bytes)) return false;
  }
}

bool take_label(std::string_view entry, ContainerNames& names) {
  std::string_view key;
  std::string_view value;
  const bool is_whole = visit_fields(entry, [&](std::uint32_t number, std::string_view bytes) {
    if (number == field::kKey) key = bytes;
    if (number == field::kValue) value = bytes;
    return true;
  });
  if (is_whole) take_container_annotation(key, value, names);
  return is_whole;
}

Result<ContainerNames> parse_message(const Call& call, std::string_view message, std::string_view asked) {
  std::string_view id;
  std::string_view name;
  std::string_view name_space;
  ContainerNames names;
  const auto take_metadata = [&](std::uint32_t number, std::string_view bytes) {
    if (number == field::kName) name = bytes;
    if (number == field::kNamespace) name_space = bytes;
    return true;
  };
  const auto take_status = [&](std::uint32_t number, std::string_view bytes) {
    if (number == field::kId) id = bytes;
    if (number == field::kMetadata) return visit_fields(bytes, take_metadata);
    if (number == field::kContainerLabels && !call.is_sandbox) return take_label(bytes, names);
    return true;
  };
  const bool is_whole = visit_fields(message, [&](std::uint32_t number, std::string_view bytes) {
    return number != field::kStatus || visit_fields(bytes, take_status);
  });
  if (!is_whole) return Error("the engine's message is damaged");
  // Engines also find a container by the beginning of its id.
  if (id != asked) return ContainerNames();
  if (call.is_sandbox) return ContainerNames{{}, clean_container_name(name), clean_container_name(name_space)};
  if (names.name.empty()) names.name = clean_container_name(name);
  return names;
}

Result<ContainerNames> answer_of(const Call& call, std::string_view asked) {
  if (!call.status) return Error("the engine does not end the call as gRPC does");
  if (std::find(kNotThere.begin(), kNotThere.end(), *call.status) != kNotThere.end()) return ContainerNames();
  if (*call.status != kOk) return Error("the engine refuses the call: gRPC status " + std::to_string(*call.status));
  const std::string_view body = call.body;
  std::size_t size = 0;
  if (body.size() >= kMessageHeadBytes) {
    for (const char c : body.substr(1, kMessageHeadBytes - 1)) size = size << 8U | static_cast<unsigned char>(c);
  }
  // No encoding was offered, so none is used.
  if (body.size() < kMessageHeadBytes || body[0] != 0 || size != body.size() - kMessageHeadBytes) {
    return Error("the engine's answer is not one message of gRPC");
  }
  return parse_message(call, body.substr(kMessageHeadBytes), asked);
}

ssize_t send_body(nghttp2_session* /*session*/, std::int32_t /*stream*/, std::uint8_t* to, std::size_t room,
                  std::uint32_t* flags, nghttp2_data_source* source, void* /*exchange*/) {
  auto& unsent = static_cast<Call*>(source->ptr)->unsent;
  const std::size_t size = std::min(room, unsent.size());
  std::memcpy(to, unsent.data(), size);
  unsent.remove_prefix(size);
  if (unsent.empty()) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return static_cast<ssize_t>(size);
}

nghttp2_nv header(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

struct CriExchange::Session {
  explicit Session(std::string_view asked);
  void ask();

  Call* call_of(std::int32_t stream) {
    auto* const found =
        std::find_if(calls.begin(), calls.end(), [&](const Call& call) { return call.stream == stream; });
    return found == calls.end() ? nullptr : found;
  }

  static int on_data(nghttp2_session* session, std::uint8_t flags, std::int32_t stream, const std::uint8_t* data,
                     std::size_t size, void* self);
  static int on_header(nghttp2_session* session, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size, std::uint8_t flags,
                       void* self);
  static int on_close(nghttp2_session* session, std::int32_t stream, std::uint32_t error, void* self);

  const std::string id;
  std::array<Call, 2> calls{Call{false, "/runtime.v1.RuntimeService/ContainerStatus"},
                            Call{true, "/runtime.v1.RuntimeService/PodSandboxStatus"}};
  SessionHandle http{};
  std::string question{};
};

CriExchange::Session::Session(std::string_view asked) : id(asked) {
  nghttp2_session_callbacks* made_callbacks = nullptr;
  nghttp2_option* made_option = nullptr;
  nghttp2_session* made_session = nullptr;
  if (::nghttp2_session_callbacks_new(&made_callbacks) != 0) throw std::bad_alloc();
  const Callbacks callbacks(made_callbacks);
  ::nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks.get(), on_data);
  ::nghttp2_session_callbacks_set_on_header_callback(callbacks.get(), on_header);
  ::nghttp2_session_callbacks_set_on_stream_close_callback(callbacks.get(), on_close);
  if (::nghttp2_option_new(&made_option) != 0) throw std::bad_alloc();
  const Option option(made_option);
  ::nghttp2_option_set_no_auto_window_update(option.get(), 1);
  if (::nghttp2_session_client_new2(&made_session, callbacks.get(), this, option.get()) != 0) throw std::bad_alloc();
  http.reset(made_session);
  ask();
}

void CriExchange::Session::ask() {
  const std::array<nghttp2_settings_entry, 3> settings{{{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                                        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kMaxEngineAnswerBytes},
                                                        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, kMaxHeaderListBytes}}};
  if (::nghttp2_submit_settings(http.get(), NGHTTP2_FLAG_NONE, settings.data(), settings.size()) != 0 ||
      ::nghttp2_session_set_local_window_size(http.get(), NGHTTP2_FLAG_NONE, 0, kMaxEngineAnswerBytes) != 0) {
    throw std::bad_alloc();
  }
  // ContainerStatusRequest and PodSandboxStatusRequest. Not verbose: that would bring the environment.
  std::string message;
  ProtobufWriter(message).bytes(field::kAskedId, id);
  const std::string body = std::string(kMessageHeadBytes - 1, '\0') + static_cast<char>(message.size()) + message;
  for (Call& call : calls) {
    call.unsent = body;
    const std::array headers{header(":method", "POST"),  header(":scheme", "http"),
                             header(":path", call.path), header(":authority", "localhost"),
                             header("te", "trailers"),   header("content-type", "application/grpc")};
    nghttp2_data_provider provider{};
    provider.source.ptr = &call;
    provider.read_callback = send_body;
    call.stream = ::nghttp2_submit_request(http.get(), nullptr, headers.data(), headers.size(), &provider, nullptr);
    if (call.stream < 0) throw std::bad_alloc();
  }
  for (;;) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = ::nghttp2_session_mem_send(http.get(), &bytes);
    if (size < 0) throw std::bad_alloc();
    if (size == 0) return;
    question.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }
}

int CriExchange::Session::on_data(nghttp2_session* /*session*/, std::uint8_t /*flags*/, std::int32_t stream,
                                  const std::uint8_t* data, std::size_t size, void* self) {
  Call* const call = static_cast<Session*>(self)->call_of(stream);
  if (call != nullptr) call->body.append(reinterpret_cast<const char*>(data), size);
  return 0;
}

int CriExchange::Session::on_header(nghttp2_session* /*session*/, const nghttp2_frame* frame, const std::uint8_t* name,
                                    std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                                    std::uint8_t /*flags*/, void* self) {
  Call* const call = static_cast<Session*>(self)->call_of(frame->hd.stream_id);
  if (call == nullptr || std::string_view(reinterpret_cast<const char*>(name), name_size) != "grpc-status") return 0;
  const auto* const text = reinterpret_cast<const char*>(value);
  int status = 0;
  const auto [end, error] = std::from_chars(text, text + value_size, status);
  if (error == std::errc() && end == text + value_size) call->status = status;
  return 0;
}

int CriExchange::Session::on_close(nghttp2_session* /*session*/, std::int32_t stream, std::uint32_t /*error*/,
                                   void* self) {
  auto& session = *static_cast<Session*>(self);
  Call* const call = session.call_of(stream);
  if (call != nullptr) call->names = answer_of(*call, session.id);
  return 0;
}

CriExchange::CriExchange(std::string_view id) : session_(std::make_unique<Session>(id)) {}
CriExchange::~CriExchange() = default;

const std::string& CriExchange::question() const { return session_->question; }

Status CriExchange::take(std::string_view bytes) {
  const ssize_t taken = ::nghttp2_session_mem_recv(session_->http.get(),
                                                   reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (taken == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
  if (taken < 0) return Error(std::string("it is no answer of HTTP/2: ") + ::nghttp2_strerror(static_cast<int>(taken)));
  return {};
}

bool CriExchange::is_over() const {
  const auto is_named = [](const Call& call) { return call.names && *call.names && **call.names != ContainerNames(); };
  const auto is_ended = [](const Call& call) { return call.names.has_value(); };
  const std::array<Call, 2>& calls = session_->calls;
  return std::any_of(calls.begin(), calls.end(), is_named) || std::all_of(calls.begin(), calls.end(), is_ended);
}

Result<ContainerNames> CriExchange::names() const {
  std::optional<Error> wrong;
  for (const Call& call : session_->calls) {
    if (call.names && *call.names && **call.names != ContainerNames()) return **call.names;
    if (!call.names) wrong = Error("the engine hangs up before it has answered");
    if (call.names && !*call.names) wrong = (*call.names).error();
  }
  if (wrong) return *wrong;
  return ContainerNames();
}

}  // namespace flamed::symbolizer
