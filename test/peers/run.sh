#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Grafana's real client against a running flamed: builds it from the Go module that Grafana's data source uses, with the
# toolchain that this module wants, which is a Go module, too; then asks flamed directly, and through nginx as the user
# guide sets it up.
#
#   test/peers/run.sh BUILD_DIR
#
# Needs root, any Go, openssl, curl, and a built flamed with the kernel tests' programs.
set -euo pipefail

source_dir=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
build_dir=$(readlink -f "${1:?usage: run.sh BUILD_DIR}")
readonly source_dir build_dir
readonly work=$build_dir/peers
mkdir -p "$work"

# shellcheck source=test/peers/support.sh
source "$source_dir/test/peers/support.sh"
# nginx's workers are another user, who may not get to the build directory.
chmod 0755 "$temporary"

# Installed, Debian's package would start a server.
find_nginx() {
  if command -v nginx; then return; fi
  if [[ ! -x $work/nginx/usr/sbin/nginx ]]; then
    (cd "$temporary" && apt-get download -q nginx >"$work/download.log" 2>&1 && dpkg-deb -x nginx_*.deb "$work/nginx") ||
      fail "there is no nginx: $(tail -1 "$work/download.log")"
  fi
  echo "$work/nginx/usr/sbin/nginx"
}

fetch_toolchain
(cd "$source_dir/test/peers" && CGO_ENABLED=0 go build -trimpath -o "$work/peers" .)

# flamed, with a token that shows everything and one that shows what nobody may see, and something to sample.
openssl rand -hex 32 >"$work/token"
nobodys=$(openssl rand -hex 32)
echo "$nobodys nobody" >>"$work/token"
chmod 0640 "$work/token"
port=$(free_port)
"$build_dir/flamed" --listen "127.0.0.1:$port" --token-file "$work/token" --cpu-budget off --history off \
  >"$work/flamed.log" 2>&1 &
started+=($!)
"$build_dir/test/kernel/victims/victim_known_chain" &
victim=$!
started+=("$victim")
await "http://127.0.0.1:$port/readyz" --fail

# Two steps of five seconds that are over, of stacks that are walked and named.
sleep 5
from=$((($(date +%s) / 5 + 1) * 5000))
to=$((from + 10000))
sleep $((to / 1000 + 5 - $(date +%s)))
client=("$work/peers" -direct "http://127.0.0.1:$port" -token-file "$work/token" -pid "$victim" -from "$from" -to "$to")
echo "-- directly"
"${client[@]}" -url "http://127.0.0.1:$port"

# nginx with the lines of the user guide, but for its port, its name and its certificate.
proxy_port=$(free_port)
openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
  -keyout "$work/proxy.key" -out "$work/proxy.pem" 2>"$work/openssl.log"
{
  printf 'user www-data;\npid %s/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n' "$temporary"
  for kind in client_body proxy fastcgi uwsgi scgi; do echo "${kind}_temp_path $temporary/$kind;"; done
  python3 - "$source_dir/docs/user-guide.md" <<'PYTHON'
import re, sys
print(re.search(r'^```nginx\n(.*?)^```', open(sys.argv[1], encoding='utf-8').read(), re.M | re.S)[1])
PYTHON
  echo '}'
} | sed -e "s/listen 9443/listen 127.0.0.1:$proxy_port/" -e 's/build7.example/localhost/' \
  -e "s|/etc/ssl/certs/build7.pem|$work/proxy.pem|" -e "s|/etc/ssl/private/build7.key|$work/proxy.key|" \
  -e "s/127.0.0.1:9090/127.0.0.1:$port/" >"$work/nginx.conf"
"$(find_nginx)" -e stderr -c "$work/nginx.conf" -g 'daemon off;' >"$work/nginx.log" 2>&1 &
started+=($!)
await "https://localhost:$proxy_port/" --cacert "$work/proxy.pem"
echo "-- through nginx with TLS"
"${client[@]}" -url "https://localhost:$proxy_port" -ca "$work/proxy.pem"

status() { curl -s -o "$work/refused" -w '%{http_code}' --cacert "$work/proxy.pem" "$@"; }
call=https://localhost:$proxy_port/querier.v1.QuerierService/LabelNames
[[ $(status -H 'Content-Type: application/json' -d '{}' "$call") == 401 ]] || fail "the proxy passed a request without a token"
[[ $(status -u grafana:secret -H 'Content-Type: application/json' -d '{}' "$call") == 401 ]] || fail "the proxy passed a password"
curl -s --fail --cacert "$work/proxy.pem" -H "Authorization: Bearer $nobodys" -H 'Content-Type: application/json' \
  -d '{"name": "process"}' "${call%/*}/LabelValues" >"$work/nobodys" || fail "the token of nobody was refused"
! grep -q victim_known "$work/nobodys" || fail "nobody sees a process of root's: $(cat "$work/nobodys")"
[[ $(status "https://localhost:$proxy_port/profile") == 404 ]] || fail "the proxy passed another path"
echo "peers: nothing wrong"
