// SPDX-License-Identifier: Apache-2.0
//
// Requests over real sockets on loopback, to servers that answer as no receiver should.
#include "push/http_client.h"

#include <httplib.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/handle.h"
#include "push/mark_file.h"
#include "test/catch.h"

namespace flamed::push {
namespace {

using std::chrono::steady_clock;

/// Answers one connection.
class Server {
 public:
  explicit Server(std::function<void(int)> answer) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(socket_.get(), 8) == 0);
    REQUIRE(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, answer = std::move(answer)] {
      const Fd client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client) return;
      char buffer[4096];
      while (request_.find("BODY") == std::string::npos) {
        const ssize_t got = ::recv(client.get(), buffer, sizeof buffer, 0);
        if (got <= 0) return;
        request_.append(buffer, static_cast<std::size_t>(got));
      }
      answer(client.get());
    });
  }
  ~Server() {
    ::shutdown(socket_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] Receiver receiver() const {
    Receiver receiver;
    receiver.origin = "http://127.0.0.1:" + std::to_string(port_);
    receiver.path = "/push";
    return receiver;
  }
  std::string request() {
    thread_.join();
    return request_;
  }

 private:
  Fd socket_;
  std::uint16_t port_ = 0;
  std::string request_;
  std::thread thread_;
};

bool put(int socket, const std::string& text) {
  return ::send(socket, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

std::string head(const std::string& more) {
  return "HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\n" + more + "\r\n";
}

TEST_CASE("a request has its body, its headers and its credentials, and its answer is read") {
  Server server(
      [](int client) { put(client, "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy"); });
  Receiver receiver = server.receiver();
  receiver.user = "user";
  receiver.password.text = "s3cret";
  receiver.headers = {{"X-Scope-OrgID", {"team", ""}}};
  const Answer answer = post(receiver, {{"Content-Type", "application/proto"}}, "BODY");
  CHECK(answer.status == 503);
  CHECK(answer.retry_after == "7");
  CHECK(answer.body == "busy");
  CHECK(answer.fault.empty());
  const std::string request = server.request();
  CHECK(request.starts_with("POST /push HTTP/1.1\r\n"));
  CHECK(request.find("X-Scope-OrgID: team\r\n") != std::string::npos);
  CHECK(request.find("Authorization: Basic dXNlcjpzM2NyZXQ=\r\n") != std::string::npos);
  CHECK(request.find("Content-Type: application/proto\r\n") != std::string::npos);
  CHECK(request.find("Content-Length: 4\r\n") != std::string::npos);
}

TEST_CASE("a redirect is not followed") {
  Server elsewhere([](int client) { put(client, head("Content-Length: 0\r\n")); });
  const std::string target = elsewhere.receiver().origin;
  Server server([&](int client) {
    put(client, "HTTP/1.1 307 Elsewhere\r\nLocation: " + target + "/push\r\nContent-Length: 0\r\n\r\n");
  });
  CHECK(post(server.receiver(), {}, "BODY").status == 307);
}

TEST_CASE("an answer without an end is read to 4 MiB and no further") {
  const std::string block(1 << 20, 'x');
  for (const std::string& length : {std::string("Content-Length: 1073741824\r\n"), std::string()}) {
    std::size_t blocks = 0;
    Server server([&](int client) {
      put(client, head(length));
      while (blocks < 1024 && put(client, block)) ++blocks;
    });
    const Answer answer = post(server.receiver(), {}, "BODY");
    CHECK(answer.status == 200);
    CHECK(answer.fault == "the answer is too large");
    CHECK(answer.body.size() <= kMostAnswerBytes);
    static_cast<void>(server.request());
    CHECK(blocks < 64);
  }
}

TEST_CASE("headers without an end are cut off, too, and what 2xx says is known all the same") {
  std::string block;
  while (block.size() < (1U << 20)) block += "X-Header: " + std::string(1000, 'x') + "\r\n";
  std::size_t blocks = 0;
  Server server([&](int client) {
    put(client, "HTTP/1.1 200 OK\r\n");
    while (blocks < 4096 && put(client, block)) ++blocks;
  });
  const Answer answer = post(server.receiver(), {}, "BODY");
  CHECK(answer.status == 200);
  CHECK(answer.fault == "the answer is too large");
  static_cast<void>(server.request());
  CHECK(blocks < 64);
}

TEST_CASE("lines of megabytes in a head are refused") {
  const std::string megabytes(8U << 20, 'x');
  for (const std::string& begin : {std::string("HTTP/1.1 200 "), std::string("HTTP/1.1 200 OK\r\nX-Header: "),
                                   std::string("HTTP/1.1 200 OK\r\n"), std::string()}) {
    CAPTURE(begin);
    Server server([&](int client) { put(client, begin + megabytes + "\r\nContent-Length: 0\r\n\r\n"); });
    const Answer answer = post(server.receiver(), {}, "BODY");
    CHECK_FALSE(answer.fault.empty());
    CHECK(answer.body.empty());
  }
}

TEST_CASE("an answer only of interim ones is none") {
  Server server([&](int client) {
    for (int i = 0; i < 100'000 && put(client, "HTTP/1.1 100 Continue\r\n\r\n"); ++i) {
    }
  });
  const Answer answer = post(server.receiver(), {}, "BODY");
  CHECK(answer.status == 0);
  CHECK(answer.fault == "the answer is too large");
}

/// A receiver over TLS, with a certificate that it has signed itself.
class TlsServer {
 public:
  struct Certificate {
    const char* name;  ///< as in subjectAltName
    long valid_for_s = 3600;
  };
  explicit TlsServer(const Certificate& of) : key_(::EVP_EC_gen("P-256")), certificate_(::X509_new()) {
    X509* const certificate = certificate_.get();
    REQUIRE(key_);
    ::X509_set_version(certificate, X509_VERSION_3);
    ::ASN1_INTEGER_set(::X509_get_serialNumber(certificate), 1);
    ::X509_gmtime_adj(::X509_getm_notBefore(certificate), -7200);
    ::X509_gmtime_adj(::X509_getm_notAfter(certificate), of.valid_for_s);
    ::X509_set_pubkey(certificate, key_.get());
    X509_NAME* const name = ::X509_get_subject_name(certificate);
    ::X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("receiver"), -1, -1,
                                 0);
    ::X509_set_issuer_name(certificate, name);
    const Handle<X509_EXTENSION*, ::X509_EXTENSION_free> names(
        ::X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, of.name));
    REQUIRE(::X509_add_ext(certificate, names.get(), -1) == 1);
    REQUIRE(::X509_sign(certificate, key_.get(), ::EVP_sha256()) > 0);
    const Fd file(::mkstemp(ca_file_.data()));
    const Handle<BIO*, ::BIO_free> out(::BIO_new_fd(file.get(), BIO_NOCLOSE));
    REQUIRE(::PEM_write_bio_X509(out.get(), certificate) == 1);

    server_ = std::make_unique<httplib::SSLServer>(certificate, key_.get());
    server_->Post("/push", [this](const httplib::Request& /*request*/, httplib::Response& response) {
      ++requests_;
      response.set_content("", "application/proto");
    });
    port_ = server_->bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    while (!server_->is_running()) std::this_thread::yield();  // before that, stop() does nothing
  }
  ~TlsServer() {
    server_->stop();
    thread_.join();
    ::unlink(ca_file_.c_str());
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  [[nodiscard]] Receiver receiver(const std::string& ca_file) const {
    Receiver receiver;
    receiver.origin = "https://127.0.0.1:" + std::to_string(port_);
    receiver.path = "/push";
    receiver.ca_file = ca_file;
    return receiver;
  }
  [[nodiscard]] const std::string& ca_file() const { return ca_file_; }
  [[nodiscard]] int requests() const { return requests_; }

 private:
  Handle<EVP_PKEY*, ::EVP_PKEY_free> key_;
  Handle<X509*, ::X509_free> certificate_;
  std::string ca_file_ = "/tmp/flamed-ca-XXXXXX";
  std::unique_ptr<httplib::SSLServer> server_;
  std::atomic<int> requests_ = 0;
  int port_ = 0;
  std::thread thread_;
};

TEST_CASE("a receiver with a certificate that is trusted gets what is sent") {
  const TlsServer server({"IP:127.0.0.1"});
  const Answer answer = post(server.receiver(server.ca_file()), {}, "BODY");
  CHECK(answer.fault.empty());
  CHECK(answer.status == 200);
  CHECK(server.requests() == 1);
}

TEST_CASE("a receiver with another certificate gets nothing, and the reason is told") {
  const auto fault = [](const TlsServer& server, const std::string& ca_file) {
    const Answer answer = post(server.receiver(ca_file), {}, "BODY");
    CHECK(answer.status == 0);
    CHECK(server.requests() == 0);
    return answer.fault;
  };
  const TlsServer unknown({"IP:127.0.0.1"});
  CHECK(fault(unknown, "").find("self-signed certificate") != std::string::npos);
  const TlsServer other_name({"IP:127.0.0.2"});
  CHECK(fault(other_name, other_name.ca_file()).find("matches target") != std::string::npos);
  CHECK(fault(unknown, other_name.ca_file()).find("certificate") != std::string::npos);
  const TlsServer expired({"IP:127.0.0.1", -3600});
  CHECK(fault(expired, expired.ca_file()).find("certificate has expired") != std::string::npos);
  CHECK(fault(unknown, "/nowhere.pem").find("/nowhere.pem") != std::string::npos);
}

TEST_CASE("an answer byte by byte ends in time", "[.slow]") {
  Server server([](int client) {
    put(client, head("Content-Length: 1000\r\n"));
    while (put(client, "x")) std::this_thread::sleep_for(std::chrono::seconds(1));
  });
  const auto began = steady_clock::now();
  const Answer answer = post(server.receiver(), {}, "BODY");
  CHECK(answer.fault.find("timed out") != std::string::npos);
  CHECK(steady_clock::now() - began < kLongestExchange + std::chrono::seconds(2));
}

TEST_CASE("without a receiver, or with one that hangs up or speaks something else, there is no answer") {
  for (const char* said : {"", "HTTP/1.1 200", "SSH-2.0-OpenSSH_9.2\r\n", "\r\n\r\n"}) {
    CAPTURE(said);
    Server server([&](int client) { put(client, said); });
    const Answer answer = post(server.receiver(), {}, "BODY");
    CHECK(answer.status <= 0);
    CHECK_FALSE(answer.fault.empty());
  }
  Receiver nobody;
  nobody.origin = "http://127.0.0.1:1";
  nobody.path = "/";
  CHECK_FALSE(post(nobody, {}, "BODY").fault.empty());
  CHECK_FALSE(ask_daemon("/nowhere.sock", "/profile", nullptr).fault.empty());
}

TEST_CASE("a mark is kept on disk, and what can't be read is told") {
  char folder[] = "/tmp/flamed-marks-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  CHECK_FALSE(load_mark(folder, "a.cpu").value());
  const Mark mark{1'769'868'015'000, 42};
  REQUIRE(save_mark(folder, "a.cpu", mark));
  CHECK(load_mark(folder, "a.cpu").value() == mark);
  const std::string path = std::string(folder) + "/a.cpu.mark";
  REQUIRE(::truncate(path.c_str(), 3) == 0);
  CHECK_FALSE(load_mark(folder, "a.cpu"));
  CHECK_FALSE(save_mark("/nowhere", "a.cpu", mark));
  ::unlink(path.c_str());
  ::rmdir(folder);
}

}  // namespace
}  // namespace flamed::push
