#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/str.h"
#include "serve/http/server.h"

namespace freshet::serve {

// A server on a free port of 127.0.0.1 with its I/O threads; stopped and joined when the test is over.
class TestServer {
 public:
  explicit TestServer(Handler handler, HttpOptions options = {}, int threads = 2)
      : log_(clock_, [this](std::string_view line) { logged_ += Str(line, "\n"); }) {
    auto server = HttpServer::Listen(options, clock_, log_, metrics_, std::move(handler));
    if (!server.ok()) CheckFailed(__FILE__, __LINE__, server.error().text.c_str());
    server_ = std::move(server).value();
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { server_->Run(); });
  }
  ~TestServer() { Stop(std::chrono::seconds(0)); }

  void Stop(base::Clock::Duration grace) {
    server_->Stop(grace);
    Join();
  }
  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  HttpServer& server() { return *server_; }
  int port() const { return server_->port(); }
  base::Metrics& metrics() { return metrics_; }
  const std::string& logged() const { return logged_; }  // once joined
  std::uint64_t Count(const std::string& name, const std::string& reason) {
    return metrics_.counter(name, Str("reason=\"", reason, "\""), "").value();
  }

 private:
  base::SystemClock clock_;
  std::string logged_;
  base::Log log_;
  base::Metrics metrics_;
  std::unique_ptr<HttpServer> server_;
  std::vector<std::thread> threads_;
};

// A client that sends any bytes it is told to. Waits for at most ten seconds.
class TestClient {
 public:
  explicit TestClient(int port, const char* from = "127.0.0.1") : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    CHECK(socket_ >= 0);
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    inet_pton(AF_INET, from, &address.sin_addr);
    CHECK(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~TestClient() { ::close(socket_); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  int socket() const { return socket_; }
  bool connected() const { return connected_; }

  // False when the server has closed the connection.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void EndSending() { ::shutdown(socket_, SHUT_WR); }

  struct Answer {
    int status = 0;  // 0: none came
    std::string head{};
    std::string body{};
  };
  // The next answer, whole. A chunked body comes as it was sent, up to its end.
  Answer Receive(bool head_only = false) {
    const std::size_t end = Await("\r\n\r\n");
    if (end == std::string::npos) return {};
    Answer answer{.status = 0, .head = buffer_.substr(0, end + 4)};
    answer.status = std::atoi(answer.head.substr(9, 3).c_str());
    buffer_.erase(0, end + 4);
    const std::size_t at = answer.head.find("Content-Length: ");
    std::size_t length = 0;
    if (at != std::string::npos && !head_only) {
      length = static_cast<std::size_t>(std::atoll(answer.head.c_str() + at + 16));
      while (buffer_.size() < length && More()) {
      }
    } else if (answer.head.find("chunked") != std::string::npos && !head_only) {
      length = Await("0\r\n\r\n") + 5;
    }
    answer.body = buffer_.substr(0, length);
    buffer_.erase(0, length);
    return answer;
  }
  Answer Ask(std::string_view request) { return Send(request), Receive(); }

  // Everything up to the end of the connection.
  std::string Rest() {
    while (More()) {
    }
    return std::exchange(buffer_, {});
  }
  bool More() {
    char bytes[64 << 10];
    const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
    if (got > 0) buffer_.append(bytes, static_cast<std::size_t>(got));
    return got > 0;
  }
  // Where `text` begins in what has come so far and not been taken; npos when it never comes.
  std::size_t Await(std::string_view text) {
    while (buffer_.find(text) == std::string::npos)
      if (!More()) return std::string::npos;
    return buffer_.find(text);
  }

 private:
  const int socket_;
  bool connected_ = false;
  std::string buffer_;
};

// Waits for at most ten seconds for something another thread does.
template <class Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 10'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

inline std::string Get(std::string_view path, std::string_view more = "") {
  return Str("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n", more, "\r\n");
}
inline std::string Post(std::string_view path, std::string_view body, std::string_view more = "") {
  return Str("POST ", path, " HTTP/1.1\r\nHost: localhost\r\n", more, "Content-Length: ", body.size(), "\r\n\r\n",
             body);
}

// Answers with what it was asked: method, path, query and body.
inline void Echo(Exchange exchange) {
  const Request& request = exchange.request();
  exchange.Send({.content_type = "text/plain",
                 .body = Str(request.method, " ", request.path, " ", request.query, " ", request.body)});
}

}  // namespace freshet::serve
