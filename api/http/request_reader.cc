// SPDX-License-Identifier: Apache-2.0
#include "api/http/request_reader.h"

#include <charconv>
#include <limits>
#include <utility>

#include "api/http/request_line.h"
#include "api/text/header_line.h"

namespace flamed::api {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
/// A client may send a line break or two after the body of the previous request (RFC 9112, 2.2).
constexpr std::size_t kMaxLeadingBytes = 2 * kLineEnd.size();

/// Tab is a blank; other control characters are not allowed in a head, and CR and LF only at the end of a line.
bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }

}  // namespace

HeadState RequestReader::append(std::string_view bytes) {
  buffer_ += bytes;
  scan();
  return state_;
}

std::string_view RequestReader::head() const {
  const std::string_view all(buffer_);
  return state_ == HeadState::kComplete ? all.substr(begin_, scanned_ - begin_) : all.substr(begin_);
}

std::string_view RequestReader::body() const {
  if (state_ != HeadState::kComplete) return {};
  return std::string_view(buffer_).substr(scanned_, body_bytes_);
}

HeadState RequestReader::next() {
  // A new string, so that an idle connection does not keep the memory of its largest request.
  std::string rest = buffer_.substr(scanned_ + body_bytes_);
  *this = RequestReader(body_limit_);
  buffer_ = std::move(rest);
  scan();
  return state_;
}

void RequestReader::refuse(std::string_view fault) {
  state_ = HeadState::kMalformed;
  fault_ = fault;
}

void RequestReader::scan() {
  while (state_ == HeadState::kIncomplete && !in_body_ && scanned_ < buffer_.size()) {
    if (scanned_ - begin_ >= kMaxHeadBytes) {
      state_ = in_headers_ ? HeadState::kHeadersTooLarge : HeadState::kUriTooLong;
      return;
    }
    const char c = buffer_[scanned_++];
    const bool after_cr = scanned_ - line_ >= 2 && buffer_[scanned_ - 2] == '\r';
    if (c == '\n') {
      if (!after_cr) return refuse("a line that does not end in CR LF");
      end_line();
    } else if (after_cr) {
      refuse("a CR in the middle of a line");
    } else if (c != '\r' && is_control(c)) {
      refuse(c == '\0' ? "a NUL" : "a control character");
    }
  }
  if (in_body_ && buffer_.size() - scanned_ >= body_bytes_) state_ = HeadState::kComplete;
}

void RequestReader::end_line() {
  const std::string_view line = std::string_view(buffer_).substr(line_, scanned_ - line_ - kLineEnd.size());
  line_ = scanned_;
  if (in_headers_) {
    if (!line.empty()) return take_header(line);
    if (needs_host_ && !has_host_) return refuse("no Host header");
    end_head();
  } else if (line.empty()) {
    begin_ = scanned_;
    if (begin_ > kMaxLeadingBytes) refuse("empty lines instead of a request");
  } else if (const auto request = parse_request_line(line)) {
    in_headers_ = true;
    needs_host_ = request->minor_version > 0;
    most_body_bytes_ = body_limit_(request->method, request->target);
  } else {
    refuse("a first line that is not METHOD /PATH HTTP/1.1");
  }
}

void RequestReader::take_header(std::string_view line) {
  const auto header = parse_header_line(line);
  if (!header) return refuse("a header that is not NAME: VALUE");
  if (is_named(*header, "host")) {
    if (std::exchange(has_host_, true)) refuse("more than one Host header");
  } else if (is_named(*header, "transfer-encoding")) {
    is_chunked_ = true;
  } else if (is_named(*header, "content-length")) {
    take_length(header->value);
  }
}

/// Programs that disagree about a length disagree about where the next request begins (RFC 9112, 6.3).
void RequestReader::take_length(std::string_view value) {
  if (most_body_bytes_ == 0) {
    has_length_ = has_length_ || value != "0";
    return;
  }
  if (std::exchange(has_length_, true)) return refuse("more than one Content-Length header");
  if (value.empty() || value.find_first_not_of("0123456789") != std::string_view::npos) {
    return refuse("a Content-Length that is not a number");
  }
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), body_bytes_);
  if (error != std::errc{}) body_bytes_ = std::numeric_limits<std::size_t>::max();
}

void RequestReader::end_head() {
  if (most_body_bytes_ == 0) {
    state_ = HeadState::kComplete;
  } else if (is_chunked_ && has_length_) {
    refuse("a Content-Length beside a Transfer-Encoding");
  } else if (!has_length_) {
    state_ = HeadState::kLengthRequired;
  } else if (body_bytes_ > most_body_bytes_) {
    state_ = HeadState::kBodyTooLarge;
  } else {
    in_body_ = true;
  }
}

}  // namespace flamed::api
