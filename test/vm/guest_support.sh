# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Inside of the virtual machine: what its test scripts share. Each prints PASS and FAIL lines, and END, on the second serial
# line or on `line`.
exec >"${line:-/dev/ttyS1}" 2>&1
cd /opt/flamed-tests || exit 1
readonly url=http://127.0.0.1:9090

# How much the host's load slows this machine down, see machine.sh.
stretch=$(grep -o 'flamed.stretch=[0-9]*' /proc/cmdline | cut -d= -f2)

now_ms() { echo $(($(date +%s%N) / 1000000)); }

pass() { echo "PASS $*"; }
fail() { echo "FAIL $*"; }

check() { # check NAME COMMAND...
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    pass "$name"
    grep '^NOTE' <<<"$output" || true
  else
    fail "$name: $(tail -c 2000 <<<"$output" | tr '\n' ' ')"
    return 1
  fi
}

within() { # within SECONDS COMMAND...: SECONDS of a host without other load
  local deadline=$((SECONDS + $1 * ${stretch:-1}))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.2
  done
}

main_pid() { systemctl show --property MainPID --value flamed; }
taken() { curl -sf "$url/metrics" | awk '$1 == "flamed_samples_taken_total" { print $2 }'; }
answers() { curl -sf -o /dev/null "$url/readyz"; }
samples_flow() {
  local before after
  before=$(taken) && sleep 2 && after=$(taken) && ((after > before))
}

service_starts() {
  if systemctl start flamed && systemctl is-active flamed && within 30 answers && samples_flow; then return 0; fi
  journalctl --no-pager --quiet --output cat --unit flamed | tail -n 20
  return 1
}
