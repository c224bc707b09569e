#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Inside the virtual machine: flamed's package on a running system without network. `old.deb` is `new.deb` with a lower
# version; `installed`, if it is there, is what `meson install` puts into place.
set -uo pipefail
export DEBIAN_FRONTEND=noninteractive
# shellcheck source=test/vm/guest_support.sh
source /opt/flamed-tests/guest_support.sh
readonly config=/etc/flamed/flamed.json history=/var/lib/flamed/history
readonly without_budget=/run/systemd/system/flamed.service.d
readonly setting=/proc/sys/kernel/perf_event_paranoid
new_version=$(dpkg-deb --field new.deb Version)
readonly new_version

has_setting() { [[ $(<"$setting") == "$1" ]]; }
not() { ! "$@"; }
version() { dpkg-query -W -f '${Version}' flamed; }
installs() { # installs DEB: without questions, and the service answers without more ado
  local said
  said=$(dpkg --install "$1" </dev/null 2>&1) && systemctl is-active flamed && within 30 answers && samples_flow && return
  echo "$said"
  journalctl --no-pager --quiet --output cat --unit flamed | tail -n 20
  return 1
}

# Stacks of a program in a whole minute that is over, from history: memory begins with the daemon. Places of BPF programs
# are taken by others, flamed's own among them.
ask_past() { curl -sf "$url/profile?format=folded&$(<past)" | grep -v bpf_prog | sort; }
is_asked() {
  local minute=$(($(date +%s) / 60 * 60))
  while :; do :; done &
  local busy=$!
  sleep $((minute + 185 - $(date +%s)))
  kill "$busy"
  echo "pid=$busy&from=$((minute + 60))&to=$((minute + 120))" >past
  ask_past >before && (($(wc -l <before) > 1))
}
is_as_before() { ask_past >after && cmp -s before after; }
is_answered_as_before() {
  within 30 is_as_before && return
  cat past
  diff before after | head -n 40
  return 1
}

echo "NOTE $(uname -r), systemd $(systemctl --version | sed -n '1s/systemd \([0-9]*\).*/\1/p')"

echo "--- installation"
check "Debian's kernel has the setting 3" has_setting 3
check "the package installs, and the service answers at once" installs old.deb
check "the setting is 2" has_setting 2
check "the service starts at each boot" systemctl is-enabled flamed
check "the program runs as its own user" test "$(stat -c %U "/proc/$(main_pid)")" = flamed

echo "--- update"
# Without a budget, which an emulated machine uses up before frames have names.
printf '%s\n' '{ "frequency_hz": 49, "cpu_budget": "off" }' >"$config"
check "the service starts with an edited configuration" systemctl restart flamed
check "there is a past" is_asked
before_update=$(main_pid)
check "an update installs, and the service answers at once" installs new.deb
check "its version is the new one" test "$(version)" = "$new_version"
check "another daemon runs" test "$(main_pid)" != "$before_update"
check "the edited configuration stays" grep -q 49 "$config"
check "and is in force" grep -q 'CPUs at 49 Hz' < <(journalctl --no-pager --output cat --unit flamed)
check "stacks of the past are as before" is_answered_as_before

echo "--- removal"
check "it is removed" dpkg --remove flamed
check "nothing of it runs" not pgrep -u flamed
check "the program is gone" not test -e /usr/bin/flamed
check "the setting is 3 again" has_setting 3
check "the configuration stays" grep -q 49 "$config"
check "history stays" test -n "$(ls "$history")"
check "it installs again" installs new.deb
check "the setting is 2 again" has_setting 2
check "stacks of the past are as before again" is_answered_as_before

echo "--- an administrator's setting"
# From 13 on Debian applies all such files whenever a package brings one, so a value that was set by hand alone is lost.
grep -q '^VERSION_CODENAME=bookworm' /etc/os-release || echo 'kernel.perf_event_paranoid = 1' >/etc/sysctl.d/local.conf
echo 1 >"$setting"
check "an update of the package succeeds" installs new.deb
check "a lower setting stays" has_setting 1

echo "--- purge"
check "it is purged" dpkg --purge flamed
check "the setting stays" has_setting 1
left=$(find / -xdev -iname '*flamed*' -not -path '/opt/*' -not -path '/etc/systemd/system/*flamed-tests*' -not -path '/tmp/*')
check "nothing is left ($left)" test -z "$left"
check "but the user" getent passwd flamed

if [[ -d installed ]]; then
  echo "--- from meson install to the package"
  tar -C installed -c . | tar -x --keep-directory-symlink -C /
  systemd-sysusers
  echo 2 >"$setting"
  # Not in the configuration, since dpkg asks about an edited file that is not its own.
  mkdir -p "$without_budget"
  printf '%s\n' '[Service]' ExecStart= 'ExecStart=/usr/local/bin/flamed --cpu-budget off' >"$without_budget/test.conf"
  systemctl daemon-reload
  check "the installed tree's service starts" service_starts
  check "from its own place" grep -q '^/usr/local/bin/flamed$' < <(readlink "/proc/$(main_pid)/exe")
  check "there is a past" is_asked
  rm -r "$without_budget"
  check "the package installs over it" installs new.deb
  systemctl restart flamed
  within 30 answers
  check "the package's program runs" grep -q '^/usr/bin/flamed$' < <(readlink "/proc/$(main_pid)/exe")
  check "stacks of the past are as before" is_answered_as_before
fi
echo END
