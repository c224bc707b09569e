# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# What the scripts with peers share. They define work, a folder that stays; `temporary` is one that goes. What is in
# `started` is ended with the script.

readonly toolchain=v0.0.1-go1.25.13
# shellcheck disable=SC2034  # Scripts that source this add to it.
started=()
temporary=$(mktemp -d)
readonly temporary

clean_up() {
  ((${#started[@]} == 0)) || kill "${started[@]}" 2>/dev/null || true
  wait || true
  rm -rf "$temporary"
}
trap clean_up EXIT

fail() {
  echo "$*" >&2
  exit 1
}

# Any Go fetches a module. In the module cache its files can't be run, and its programs have lost that right anyway.
fetch_toolchain() {
  local folder=$work/toolchain
  if [[ ! -x $folder/bin/go ]]; then
    local fetching=$work/fetching module
    rm -rf "$fetching" "$folder"
    mkdir -p "$fetching"
    printf 'module fetching\n' >"$fetching/go.mod"
    module=golang.org/toolchain@$toolchain.linux-$(go env GOARCH)
    (cd "$fetching" && GOTOOLCHAIN=local GOFLAGS=-mod=mod go mod download -json "$module") >"$fetching/module.json"
    cp -r "$(sed -n 's/^\t"Dir": "\(.*\)",\?$/\1/p' "$fetching/module.json")" "$folder"
    chmod -R u+w "$folder"
    find "$folder/bin" "$folder/pkg/tool" -type f -exec chmod +x {} +
  fi
  export PATH=$folder/bin:$PATH GOROOT=$folder GOTOOLCHAIN=local GOFLAGS=''
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

await() { # await URL [CURL_OPTION...]
  local _
  for _ in {1..100}; do
    if curl -s -o "$work/awaited" "${@:2}" "$1"; then return; fi
    sleep 0.1
  done
  fail "nothing answers at $1"
}
