// SPDX-License-Identifier: Apache-2.0
#include "test/support/running_daemon.h"

#include <arpa/inet.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/handle.h"

namespace flamed::test {
namespace {

std::vector<std::string> command_of(std::uint16_t port, const std::vector<std::string>& arguments,
                                    const std::vector<std::string>& launcher) {
  const char* binary = std::getenv("FLAMED_BINARY");
  if (binary == nullptr) throw std::runtime_error("FLAMED_BINARY does not name the daemon to test");
  std::vector<std::string> command = launcher;
  command.insert(command.end(), {binary, "--listen", "127.0.0.1:" + std::to_string(port)});
  // Tests count samples, and load must not reduce them. A flag would override a test's file.
  if (std::find(arguments.begin(), arguments.end(), "--config") == arguments.end()) {
    command.insert(command.end(), {"--cpu-budget", "off"});
  }
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace

int patience() { return std::getenv("FLAMED_EMULATED") == nullptr ? 1 : 20; }

std::uint16_t free_port() {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no free port");
  }
  return ntohs(address.sin_port);
}

RunningDaemon::RunningDaemon(const std::vector<std::string>& arguments, const std::vector<std::string>& launcher)
    : port_(free_port()), process_(command_of(port_, arguments, launcher), ChildProcess::Capture::kOutputAndErrors) {
  const bool ready = eventually(std::chrono::seconds(180) * patience(), [this] {
    if (process_.wait(std::chrono::milliseconds(1))) {
      std::string words;
      while (const auto line = process_.read_line(std::chrono::milliseconds(100))) words += *line + "\n";
      throw std::runtime_error("the daemon ended at once: " + words);
    }
    // Its last kernel programs are loaded after that: until then stacks are walked by frame pointers alone.
    return get("/readyz").status == 200 && get("/healthz").body.find(" is being loaded") == std::string::npos;
  });
  if (!ready) throw std::runtime_error("the daemon did not become ready in time");
}

HttpAnswer RunningDaemon::get(const std::string& target) const { return send({"GET", target, {}, ""}); }

HttpAnswer RunningDaemon::send(const HttpQuestion& question) const {
  httplib::Client client("127.0.0.1", port_);
  client.set_url_encode(false);  // the target is sent as it is
  client.set_read_timeout(std::chrono::seconds(20) * patience());
  httplib::Request request;
  request.method = question.method;
  request.path = question.target;
  request.headers.insert(question.headers.begin(), question.headers.end());
  request.headers.emplace("Accept-Encoding", "identity");
  request.body = question.body;
  const httplib::Result answer = client.send(request);
  if (!answer) return {};
  return {answer->status, answer->get_header_value("Content-Type"), answer->body};
}

nlohmann::json RunningDaemon::get_json(const std::string& target) const {
  return nlohmann::json::parse(get(target).body);
}

std::map<std::string, std::uint64_t> RunningDaemon::folded(const std::string& target) const {
  const HttpAnswer answer = get(target);
  if (answer.status != 200) {
    throw std::runtime_error(target + " was answered with status " + std::to_string(answer.status) + ": " +
                             answer.body);
  }
  std::map<std::string, std::uint64_t> stacks;
  std::istringstream lines(answer.body);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t blank = line.rfind(' ');
    if (line.starts_with("# ")) continue;  // the reason for an empty answer
    if (blank != std::string::npos) stacks[line.substr(0, blank)] += std::stoull(line.substr(blank + 1));
  }
  return stacks;
}

std::map<std::string, double> RunningDaemon::metrics() const {
  std::map<std::string, double> sums;
  std::istringstream lines(get("/metrics").body);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    sums[line.substr(0, line.find_first_of("{ "))] += std::stod(line.substr(line.rfind(' ') + 1));
  }
  return sums;
}

RunningDaemon::End RunningDaemon::end() {
  const auto start = std::chrono::steady_clock::now();
  process_.signal(SIGTERM);
  End end;
  end.exit_code = process_.wait(std::chrono::seconds(20) * patience()).value_or(-1);
  end.took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  while (const auto line = process_.read_line(std::chrono::milliseconds(100))) {
    std::smatch found;
    static const std::regex kSummary(
        "ended: ([0-9]+) samples taken = ([0-9]+) whole \\+ ([0-9]+) guessed \\+ ([0-9]+) truncated \\+ ([0-9]+) "
        "lost(.*)$");
    if (!std::regex_search(*line, found, kSummary)) continue;
    end.taken = std::stoull(found[1]);
    end.whole = std::stoull(found[2]);
    end.truncated = std::stoull(found[3]) + std::stoull(found[4]);
    end.lost = std::stoull(found[5]);
    end.losses = found[6];
  }
  return end;
}

bool RunningDaemon::eventually(std::chrono::milliseconds limit, const std::function<bool()>& done,
                               std::chrono::milliseconds pause) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

}  // namespace flamed::test
