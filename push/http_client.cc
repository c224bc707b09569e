// SPDX-License-Identifier: Apache-2.0
#include "push/http_client.h"

#include <curl/curl.h>

#include <array>
#include <cstring>
#include <new>
#include <string_view>

#include "base/handle.h"

namespace flamed::push {
namespace {

constexpr long kLongestConnectMs = 10'000;
/// Of all lines before the body. libcurl has a limit for each of them, 100 KB, the status line included.
constexpr std::size_t kMostHeadBytes = std::size_t{64} << 10;
/// Profiles of everything in an hour; more than the largest request that receivers take.
constexpr std::size_t kMostDaemonBytes = std::size_t{64} << 20;

/// One request and its answer. libcurl has its address.
class Exchange {
 public:
  Exchange(const std::string& url, std::size_t most_bytes) : easy_(::curl_easy_init()), most_bytes_(most_bytes) {
    if (!easy_) throw std::bad_alloc();
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_PATH_AS_IS, 1L);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_PROXY, "");  // not from the environment either
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT_MS, kLongestConnectMs);
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(std::chrono::milliseconds(kLongestExchange).count()));
    set(CURLOPT_ERRORBUFFER, error_.data());
    set(CURLOPT_HEADERFUNCTION, &Exchange::take_head);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_WRITEFUNCTION, &Exchange::take_body);
    set(CURLOPT_WRITEDATA, this);
  }
  ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  template <typename Value>
  void set(CURLoption option, Value value) {
    const CURLcode code = ::curl_easy_setopt(easy_.get(), option, value);
    if (code != CURLE_OK) throw std::runtime_error(::curl_easy_strerror(code));
  }

  void add_header(const std::string& name, const std::string& value) {
    // libcurl's form for a header without a value.
    const std::string line = value.empty() ? name + ";" : name + ": " + value;
    add_line(line);
  }

  /// `body` must stay.
  void post(const std::string& body) {
    set(CURLOPT_POSTFIELDS, body.c_str());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    add_line("Expect:");  // none: it would wait for an answer before the body
  }

  /// Why there is no whole answer, a phrase; empty: there is.
  std::string run() {
    set(CURLOPT_HTTPHEADER, lines_.get());
    const CURLcode code = ::curl_easy_perform(easy_.get());
    if (code == CURLE_OK) return {};
    if (is_too_large_) return "the answer is too large";
    std::string fault = error_[0] != '\0' ? error_.data() : ::curl_easy_strerror(code);
    long number = 0;
    if (code == CURLE_COULDNT_CONNECT && ::curl_easy_getinfo(easy_.get(), CURLINFO_OS_ERRNO, &number) == CURLE_OK &&
        number != 0) {
      fault += " (" + std::generic_category().message(static_cast<int>(number)) + ")";
    }
    return fault;
  }

  /// 0: no final status came.
  [[nodiscard]] int status() const {
    constexpr long kFirstFinal = 200;
    long status = 0;
    const bool is_known = ::curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status) == CURLE_OK;
    return is_known && status >= kFirstFinal ? static_cast<int>(status) : 0;
  }
  /// Empty: the answer has none.
  [[nodiscard]] std::string header(const char* name) const {
    curl_header* header = nullptr;
    return ::curl_easy_header(easy_.get(), name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK ? header->value : "";
  }
  [[nodiscard]] std::string& body() { return body_; }

 private:
  void add_line(const std::string& line) {
    curl_slist* const longer = ::curl_slist_append(lines_.get(), line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    static_cast<void>(lines_.release());
    lines_.reset(longer);
  }

  // An answer other than `size` ends the exchange.
  static std::size_t take_head(const char* /*data*/, std::size_t /*one*/, std::size_t size, void* self) {
    auto& exchange = *static_cast<Exchange*>(self);
    exchange.head_bytes_ += size;
    exchange.is_too_large_ = exchange.head_bytes_ > kMostHeadBytes;
    return exchange.is_too_large_ ? 0 : size;
  }
  static std::size_t take_body(const char* data, std::size_t /*one*/, std::size_t size, void* self) noexcept {
    auto& exchange = *static_cast<Exchange*>(self);
    exchange.is_too_large_ = size > exchange.most_bytes_ - exchange.body_.size();
    if (exchange.is_too_large_) return 0;
    exchange.body_.append(data, size);
    return size;
  }

  Handle<CURL*, ::curl_easy_cleanup> easy_;
  Handle<curl_slist*, ::curl_slist_free_all> lines_;
  const std::size_t most_bytes_;
  std::size_t head_bytes_ = 0;
  bool is_too_large_ = false;
  std::string body_;
  std::array<char, CURL_ERROR_SIZE> error_{};
};

}  // namespace

Answer post(const Receiver& receiver, const Headers& headers, const std::string& body) {
  Answer answer;
  try {
    Exchange exchange(receiver.origin + receiver.path, kMostAnswerBytes);
    exchange.set(CURLOPT_USERAGENT, "flamed-push");
    if (!receiver.ca_file.empty()) exchange.set(CURLOPT_CAINFO, receiver.ca_file.c_str());
    if (!receiver.user.empty()) {
      exchange.set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
      exchange.set(CURLOPT_USERNAME, receiver.user.c_str());
      exchange.set(CURLOPT_PASSWORD, receiver.password.text.c_str());
    }
    if (!receiver.bearer_token.text.empty())
      exchange.add_header("Authorization", "Bearer " + receiver.bearer_token.text);
    for (const auto& [name, value] : headers) exchange.add_header(name, value);
    for (const auto& [name, value] : receiver.headers) exchange.add_header(name, value.text);
    exchange.post(body);
    answer.fault = exchange.run();
    answer.status = exchange.status();
    answer.content_type = exchange.header("Content-Type");
    answer.retry_after = exchange.header("Retry-After");
    answer.body = std::move(exchange.body());
  } catch (const std::exception& exception) {
    answer.fault = exception.what();
  }
  return answer;
}

LocalAnswer ask_daemon(const std::string& socket, const std::string& target, const std::string* body) {
  LocalAnswer answer;
  try {
    Exchange exchange("http://localhost" + target, kMostDaemonBytes);
    exchange.set(CURLOPT_UNIX_SOCKET_PATH, socket.c_str());
    if (body != nullptr) {
      exchange.add_header("Content-Type", "application/json");
      exchange.post(*body);
    }
    answer.fault = exchange.run();
    if (!answer.fault.empty()) return answer;
    answer.status = exchange.status();
    answer.window = exchange.header("Flamed-Window");
    answer.quality = exchange.header("Flamed-Quality");
    answer.body = std::move(exchange.body());
  } catch (const std::exception& exception) {
    answer.fault = exception.what();
  }
  return answer;
}

}  // namespace flamed::push
