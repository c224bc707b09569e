// SPDX-License-Identifier: Apache-2.0
#include "api/http/asset_response.h"

#include <string>
#include <utility>

#include "api/http/problem.h"
#include "api/http/response.h"
#include "api/text/gzip.h"

namespace flamed::api {
namespace {

/// The published speedscope has inline styles and compiles its demangler. Scripts from text stay refused (one library
/// tries, and works without).
constexpr std::string_view kSpeedscope = "/speedscope/";
constexpr std::string_view kSpeedscopePolicy =
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; object-src 'none'";

}  // namespace

Response asset_response(const Asset& asset, std::string_view accept_encoding) {
  Response response;
  response.content_type = asset.content_type;
  response.headers.emplace_back("Cache-Control", asset.is_hashed ? "public, max-age=31536000, immutable" : "no-cache");
  response.headers.emplace_back("Vary", "Accept-Encoding");
  if (asset.path.starts_with(kSpeedscope)) {
    response.headers.emplace_back("Content-Security-Policy", kSpeedscopePolicy);
  }
  const auto send = [&](std::span<const unsigned char> packed, const char* coding) {
    response.body.assign(packed.begin(), packed.end());
    response.headers.emplace_back("Content-Encoding", coding);
  };
  if (!asset.brotli.empty() && accepts_coding(accept_encoding, "br")) {
    send(asset.brotli, "br");
  } else if (accepts_gzip(accept_encoding)) {
    send(asset.gzip, "gzip");
  } else {
    auto text = gunzip(asset.gzip);
    if (!text) return problem_response(internal_error(text.error().message()));
    response.body = std::move(*text);
  }
  return response;
}

}  // namespace flamed::api
