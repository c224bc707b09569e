// SPDX-License-Identifier: Apache-2.0
#include "api/socket/port_owner.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "test/catch.h"

namespace flamed::api {
namespace {

constexpr std::string_view kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:2382 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0\n"
    "   1: 0100007F:2382 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 20 4 30 10 "
    "-1\n"
    "   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 99 1 0 100 0 0 10 0\n";

sockaddr_storage address_of(int family, const char* text) {
  sockaddr_storage storage{};
  if (family == AF_INET) {
    sockaddr_in ipv4{};
    ipv4.sin_family = AF_INET;
    REQUIRE(::inet_pton(family, text, &ipv4.sin_addr) == 1);
    std::memcpy(&storage, &ipv4, sizeof ipv4);
  } else {
    sockaddr_in6 ipv6{};
    ipv6.sin6_family = AF_INET6;
    REQUIRE(::inet_pton(family, text, &ipv6.sin6_addr) == 1);
    std::memcpy(&storage, &ipv6, sizeof ipv6);
  }
  return storage;
}

/// A small /proc, removed at the end.
class FakeProc {
 public:
  FakeProc() {
    std::string pattern = (std::filesystem::temp_directory_path() / "flamed-proc-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    root_ = pattern;
  }
  ~FakeProc() { std::filesystem::remove_all(root_); }
  FakeProc(const FakeProc&) = delete;
  FakeProc& operator=(const FakeProc&) = delete;

  void write(const std::string& path, std::string_view text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void link(const std::string& path, const std::string& target) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::filesystem::create_symlink(target, root_ / path);
  }
  [[nodiscard]] std::string root() const { return root_.string(); }

 private:
  std::filesystem::path root_;
};

TEST_CASE("listening sockets are read from the kernel's table") {
  const auto sockets = parse_listening_sockets(kTable);
  REQUIRE(sockets.size() == 2);
  CHECK(sockets[0].address == "0100007F");
  CHECK(sockets[0].port == 9090);
  CHECK(sockets[0].inode == 4711);
  CHECK(sockets[1].port == 22);
}

TEST_CASE("rows that are no rows are skipped") {
  CHECK(parse_listening_sockets("").empty());
  CHECK(parse_listening_sockets("\n\n  0:\n").empty());
  CHECK(parse_listening_sockets("0: 0100007F 00000000:0000 0A a b c d e 12\n").empty());
  CHECK(parse_listening_sockets("0: 0100007F:99999 00000000:0000 0A a b c d e 12\n").empty());
  CHECK(parse_listening_sockets("0: 0100007F:2382 00000000:0000 0A a b c d e x\n").empty());
}

TEST_CASE("addresses are written as the kernel's table writes them") {
  CHECK(proc_net_address(address_of(AF_INET, "127.0.0.1")) == "0100007F");
  CHECK(proc_net_address(address_of(AF_INET6, "::1")) == "00000000000000000000000001000000");
}

TEST_CASE("an address conflicts with itself and with the unspecified one") {
  const std::string any6(32, '0');
  CHECK(addresses_conflict("0100007F", "0100007F"));
  CHECK(addresses_conflict("0100007F", "00000000"));
  CHECK(addresses_conflict("00000000", "0100007F"));
  CHECK(addresses_conflict("0100007F", any6));
  CHECK_FALSE(addresses_conflict("0100007F", "0200007F"));
  CHECK_FALSE(addresses_conflict("00000000000000000000000001000000", "00000000"));
}

TEST_CASE("the owner of a port is found by its descriptor") {
  const FakeProc proc;
  proc.write("net/tcp", kTable);
  proc.write("self-is-no-pid/comm", "x\n");
  proc.write("1/comm", "systemd\n");
  proc.link("1/fd/3", "socket:[99]");
  proc.write("123/comm", "prometheus\n");
  proc.link("123/fd/0", "/dev/null");
  proc.link("123/fd/8", "socket:[4711]");
  const auto owner = find_port_owner(9090, "0100007F", proc.root());
  REQUIRE(owner.has_value());
  CHECK(owner->pid == 123);
  CHECK(owner->comm == "prometheus");
}

TEST_CASE("an owner that cannot be seen is nobody") {
  const FakeProc proc;
  proc.write("net/tcp", kTable);
  proc.write("1/comm", "systemd\n");
  CHECK_FALSE(find_port_owner(9090, "0100007F", proc.root()).has_value());
  CHECK_FALSE(find_port_owner(9091, "0100007F", proc.root()).has_value());
  CHECK_FALSE(find_port_owner(9090, "0200007F", proc.root()).has_value());
  CHECK_FALSE(find_port_owner(9090, "0100007F", proc.root() + "/missing").has_value());
}

}  // namespace
}  // namespace flamed::api
