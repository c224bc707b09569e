#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In a bare tree, with flamed's packages in /src: installs, removes and purges them, and checks what is there in between.
#
# The tree has this machine's /proc. kernel.perf_event_paranoid is a file of the test's own, mounted over it, so that the
# machine's setting stays as it is.
set -euo pipefail
cd /src
export DEBIAN_FRONTEND=noninteractive
package=$(echo ./flamed_*.deb)
push_package=$(echo ./flamed-push_*.deb)
readonly package push_package
readonly setting=/proc/sys/kernel/perf_event_paranoid
readonly config=/etc/flamed/flamed.json
readonly history=/var/lib/flamed/history cache=/var/cache/flamed/rows
readonly port=19091 # not flamed's own default: one may be running on this machine

check() { # check WHAT COMMAND...
  local what=$1
  shift
  "$@" || { echo "FAIL $what ($*)"; exit 1; }
  echo "ok   $what"
}
not() { ! "$@"; }
has_setting() { [[ $(<"$setting") == "$1" ]]; }
has_user() { getent passwd flamed >/dev/null && getent group flamed >/dev/null; }
install() { dpkg --install "$package"; }
remove() { dpkg --remove flamed; }
purge() { dpkg --purge flamed; }

answer() { # answer PATH: of the daemon, with its head
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  printf 'GET %s HTTP/1.0\r\nHost: localhost:%s\r\n\r\n' "$1" "$port" >&3
  cat <&3
  exec 3>&-
}
is_answered() { # is_answered PATH PATTERN
  answer "$1" | tr -d '\0' | grep -q "$2"
}

echo "--- an image of a machine that is not running"
machines_own=$(<"$setting")
apt-get update -q
apt-get install -q -y --no-install-recommends "$package"
check "the package says that it is installed" test "$(dpkg-query -W -f '${db:Status-Status}' flamed)" = installed
check "this machine's setting is left alone" has_setting "$machines_own"
check "the user exists" has_user

echo "--- what is installed"
check "the program runs" flamed --version
check "flamed-top runs" flamed-top --version
check "the daemon links no terminal library" not grep -q ncurses < <(ldd "$(command -v flamed)")
check "the configuration is good" flamed --check-config
check "the configuration is a conffile" grep -q "^ $config " < <(dpkg-query -W -f '${Conffiles}\n' flamed)
check "the unit is enabled" test -L /etc/systemd/system/multi-user.target.wants/flamed.service
check "systemd accepts the unit" systemd-analyze verify flamed.service
check "only root may write to its files" test -z "$(dpkg -L flamed | xargs -d '\n' -I{} find {} -maxdepth 0 -not -type l \( -not -user root -o -perm /022 \))"
for file in /usr/share/doc/flamed/copyright /usr/lib/sysctl.d/10-flamed.conf /usr/lib/sysusers.d/flamed.conf; do
  check "there is $file" test -e "$file"
done
# A minimal tree's dpkg may be told to leave out manual pages.
for page in man1/flamed-top.1.gz man8/flamed.8.gz man5/flamed.json.5.gz; do
  check "there is $page" grep -q "/usr/share/man/$page$" < <(dpkg-deb --contents "$package" | tr -s ' ')
done

echo "--- the program"
flamed --listen "127.0.0.1:$port" --history off 2>/src/log &
daemon=$!
trap 'kill "$daemon" 2>/dev/null || true' EXIT
for ((tries = 0; tries < 60; tries++)); do
  ! is_answered /readyz '200 OK' 2>/dev/null || break
  kill -0 "$daemon" || { cat /src/log; exit 1; }
  sleep 1
done
check "it samples" is_answered /readyz '200 OK'
check "it serves the page" is_answered / '<script type="module" src="/assets/main'
check "it does not serve speedscope" is_answered /speedscope/ '^HTTP/1.[01] 404'
kill -TERM "$daemon"
check "it ends at SIGTERM" wait "$daemon"
trap - EXIT

echo "--- flamed-push"
check "flamed does without its libraries" not grep -Eq 'libcurl|libssl' < <(dpkg-query -W -f '${Depends}\n' flamed)
apt-get install -q -y --no-install-recommends "$push_package"
check "the program runs" flamed-push --version
check "its user is in the group flamed" grep -q '[:,]flamed-push$' < <(getent group flamed)
check "the unit is not enabled" not test -e /etc/systemd/system/multi-user.target.wants/flamed-push.service
check "systemd accepts the unit" systemd-analyze verify flamed-push.service
check "there is its manual page" grep -q "/usr/share/man/man8/flamed-push.8.gz$" < <(dpkg-deb --contents "$push_package")
echo '{ "receivers": [{ "name": "here", "format": "otlp", "url": "http://127.0.0.1:4318" }] }' >/etc/flamed/push.json
check "a configuration is good" flamed-push --check-config
mkdir /var/lib/flamed-push
dpkg --remove flamed-push
check "the configuration outlasts a removal" test -e /etc/flamed/push.json
check "and the marks" test -d /var/lib/flamed-push
dpkg --purge flamed-push
check "a purge removes the configuration" not test -e /etc/flamed/push.json
check "and the marks" not test -e /var/lib/flamed-push
check "but not flamed's" test -e "$config"

echo "--- an edited configuration, history and cache"
mkdir -p "$history" "$cache"
echo '{ "frequency_hz": 49 }' >"$config"
install
check "an edited configuration outlasts an update" grep -q 49 "$config"
remove
check "it outlasts a removal" grep -q 49 "$config"
check "so does history" test -d "$history"
check "the program is gone" not test -e /usr/bin/flamed
check "the user stays" has_user
purge
check "a purge removes the configuration" not test -e /etc/flamed
check "and history" not test -e /var/lib/flamed
check "and the cache" not test -e /var/cache/flamed
check "and the link to the unit" not test -L /etc/systemd/system/multi-user.target.wants/flamed.service
check "the user still stays" has_user

echo "--- the kernel setting of a running machine"
mkdir -p /run/systemd/system
echo 3 >/src/setting
mount --bind /src/setting "$setting"
install
check "Debian's 3 becomes 2" has_setting 2
install
check "an update leaves it" has_setting 2
remove
check "a removal gives 3 back" has_setting 3
install
check "again 2" has_setting 2
echo 1 >"$setting"
remove
check "another value since then stays" has_setting 1
install
check "a lower value stays" has_setting 1
purge
check "and is still there after a purge" has_setting 1
echo 4 >"$setting"
echo kernel.perf_event_paranoid=3 >/etc/sysctl.d/50-administrator.conf
install
check "an administrator's file wins" has_setting 3
remove
check "also at a removal" has_setting 3
check "nothing of the package is left" test -z "$(find /var/lib/misc -name 'flamed*')"
