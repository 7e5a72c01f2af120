#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <deque>
#include <optional>
#include <thread>

#include "serve/http/testing.h"

namespace freshet::serve {
namespace {

using namespace std::chrono_literals;

TEST(HttpLimits, EndAHeaderThatDoesNotEnd) {
  HttpOptions options;
  options.limits.header_timeout = 200ms;
  TestServer server(Echo, options);
  TestClient slow(server.port()), silent(server.port()), second(server.port());
  ASSERT_TRUE(slow.Send("GET / HTTP/1.1\r\nHost: loc"));
  EXPECT_EQ(second.Ask(Get("/")).status, 200);
  ASSERT_TRUE(second.Send("GET"));
  EXPECT_EQ(slow.Receive().status, 408);
  EXPECT_EQ(silent.Rest(), "");
  EXPECT_EQ(second.Receive().status, 408);
  EXPECT_EQ(server.Count("freshet_bad_input_total", "slow_header"), 2u);
}

TEST(HttpLimits, EndABodyThatTrickles) {
  HttpOptions options;
  options.limits.rate_window = 200ms;
  TestServer server(Echo, options);
  TestClient counted(server.port()), chunked(server.port());
  ASSERT_TRUE(counted.Send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nabc"));
  ASSERT_TRUE(chunked.Send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1"));
  EXPECT_EQ(counted.Receive().status, 408);
  EXPECT_EQ(chunked.Receive().status, 408);
}

TEST(HttpLimits, EndABodyThatStallsHoweverMuchHasCome) {
  HttpOptions options;
  options.limits.rate_window = 200ms;
  TestServer server(Echo, options);
  TestClient counted(server.port()), chunked(server.port());
  const std::string most(1'000'000, 'x');
  ASSERT_TRUE(counted.Send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000001\r\n\r\n" + most));
  ASSERT_TRUE(chunked.Send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nf4241\r\n" + most));
  EXPECT_EQ(counted.Receive().status, 408);
  EXPECT_EQ(chunked.Receive().status, 408);
}

TEST(HttpLimits, CloseIdleConnectionsWithoutAWord) {
  HttpOptions options;
  options.limits.idle_timeout = 200ms;
  TestServer server(Echo, options);
  TestClient client(server.port());
  EXPECT_EQ(client.Ask(Get("/")).status, 200);
  EXPECT_EQ(client.Rest(), "");
}

TEST(HttpLimits, EndAnAnswerNobodyReads) {
  HttpOptions options;
  options.limits.rate_window = 200ms;
  std::string large;
  large.resize(20'000'000, 'x');
  TestServer server([&](Exchange exchange) { exchange.Send({.body = large}); }, options);
  TestClient client(server.port());
  const int small = 4096;
  ::setsockopt(client.socket(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  ASSERT_TRUE(client.Send(Get("/")));
  EXPECT_TRUE(Eventually([&] { return server.Count("freshet_rejected_connections_total", "slow_reader") == 1; }));
}

TEST(HttpLimits, EndARequestTheHandlerDoesNotAnswer) {
  HttpOptions options;
  options.limits.answer_timeout = 200ms;
  std::mutex mutex;
  std::vector<Exchange> held;
  TestServer server(
      [&](Exchange exchange) {
        const std::lock_guard lock(mutex);
        held.push_back(std::move(exchange));
      },
      options);
  TestClient client(server.port());
  EXPECT_EQ(client.Ask(Get("/path")).status, 504);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(held.at(0).request().path, "/path");  // its memory is still there
  held[0].Send({});                               // too late, and no harm
}

TEST(HttpLimits, RefuseConnectionsBeyondAnAddressesShare) {
  HttpOptions options;
  options.limits.connections_from_loopback = 3;
  TestServer server(Echo, options);
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    EXPECT_EQ(clients.back()->Ask(Get("/")).status, 200);
  }
  TestClient fourth(server.port()), other(server.port(), "127.0.0.9");
  EXPECT_EQ(fourth.Receive().status, 429);
  EXPECT_EQ(other.Ask(Get("/")).status, 200);
  clients.pop_back();
  EXPECT_TRUE(Eventually([&] { return TestClient(server.port()).Ask(Get("/")).status == 200; }));
}

TEST(HttpLimits, LetTheConnectionGoThatHasWaitedLongest) {
  HttpOptions options;
  options.limits.connections = 4;
  TestServer server(Echo, options);
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    EXPECT_EQ(clients.back()->Ask(Get("/")).status, 200);
  }
  EXPECT_EQ(clients[0]->Ask(Get("/")).status, 200);  // now the second has waited longest
  TestClient fifth(server.port());
  EXPECT_EQ(fifth.Ask(Get("/")).status, 200);
  EXPECT_EQ(clients[1]->Rest(), "");
  for (const int i : {0, 2, 3}) EXPECT_EQ(clients[static_cast<std::size_t>(i)]->Ask(Get("/")).status, 200) << i;
  EXPECT_EQ(server.Count("freshet_rejected_connections_total", "evicted"), 1u);
}

TEST(HttpLimits, TurnNewOnesAwayWhenAllAreAtWork) {
  HttpOptions options;
  options.limits.connections = 2;
  std::mutex mutex;
  std::vector<Exchange> held;
  std::atomic<int> count{0};
  TestServer server(
      [&](Exchange exchange) {
        const std::lock_guard lock(mutex);
        held.push_back(std::move(exchange));
        ++count;
      },
      options);
  TestClient first(server.port()), second(server.port());
  ASSERT_TRUE(first.Send(Get("/")) && second.Send(Get("/")));
  ASSERT_TRUE(Eventually([&] { return count == 2; }));
  TestClient third(server.port());
  const auto answer = third.Ask(Get("/"));
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.head.find("Retry-After"), std::string::npos);
  const std::lock_guard lock(mutex);
  for (Exchange& exchange : held) exchange.Send({});
  EXPECT_EQ(first.Receive().status, 200);
  EXPECT_EQ(second.Receive().status, 200);
}

TEST(HttpLimits, HoldOnlySoManyLargeBodies) {
  HttpOptions options;
  options.limits.bodies_bytes = 3 << 20;
  std::mutex mutex;
  std::optional<Exchange> held;
  TestServer server(
      [&](Exchange exchange) {
        const std::lock_guard lock(mutex);
        if (exchange.request().path == "/held") return void(held.emplace(std::move(exchange)));
        exchange.Send({});
      },
      options);
  const std::string body(1'100'000, 'x');  // takes 2 MB
  TestClient first(server.port()), second(server.port()), third(server.port());
  ASSERT_TRUE(first.Send(Post("/held", body)));
  ASSERT_TRUE(Eventually([&] {
    const std::lock_guard lock(mutex);
    return held.has_value();
  }));
  second.Send(Post("/", body));
  EXPECT_EQ(second.Receive().status, 503);
  {
    const std::lock_guard lock(mutex);
    held->Send({});
  }
  EXPECT_EQ(first.Receive().status, 200);
  EXPECT_EQ(third.Ask(Post("/", body)).status, 200);  // the room is free again
}

TEST(HttpLimits, MakeRoomForNewcomersAmongTheSlow) {
  HttpOptions options;
  options.limits.connections = 50;
  TestServer server(Echo, options);
  std::vector<std::unique_ptr<TestClient>> slow;
  for (int i = 0; i < 50; ++i) {
    slow.push_back(std::make_unique<TestClient>(server.port()));
    slow.back()->Send(i % 2 == 0 ? "GET / HT" : "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1");
  }
  for (int i = 0; i < 20; ++i) {
    slow.push_back(std::make_unique<TestClient>(server.port()));
    EXPECT_EQ(slow.back()->Ask(Get("/")).status, 200);
  }
}

TEST(HttpLimits, KeepAPoliteClientUndisturbed) {
  HttpOptions options;
  options.limits.connections = 60;
  options.limits.connections_from_loopback = 40;
  options.limits.header_timeout = 200ms;
  options.limits.rate_window = 200ms;
  TestServer server(Echo, options);
  const std::string requests[] = {"GET / HT", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1",
                                  std::string(20'000, '\xff'), Get("/") + Get("/") + "GET / HTTP/9.9\r\n", ""};
  std::atomic<bool> done{false};
  std::thread trouble([&] {
    std::deque<TestClient> rude;
    for (std::size_t i = 0; !done; ++i) {
      rude.emplace_back(server.port(), "127.0.0.66");
      rude.back().Send(requests[i % std::size(requests)]);
      if (rude.size() > 100) rude.pop_front();
    }
  });
  int answered = 0;
  for (int i = 0; i < 300; ++i) answered += TestClient(server.port()).Ask(Get("/")).status == 200;
  done = true;
  trouble.join();
  EXPECT_EQ(answered, 300);
}

TEST(HttpLimits, SurviveRunningOutOfDescriptors) {
  TestServer server(Echo, {}, 1);
  TestClient before(server.port());
  EXPECT_EQ(before.Ask(Get("/")).status, 200);
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  const int next = ::dup(before.socket());
  ::close(next);
  rlimit low = old;
  low.rlim_cur = static_cast<rlim_t>(next) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  {
    TestClient turned_away(server.port());  // takes the last descriptor, so that there is none to accept it with
    EXPECT_EQ(turned_away.Rest(), "");
    EXPECT_EQ(before.Ask(Get("/")).status, 200);
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_GE(server.Count("freshet_rejected_connections_total", "descriptors"), 1u);
  TestClient after(server.port());
  EXPECT_EQ(after.Ask(Get("/")).status, 200);
}

}  // namespace
}  // namespace freshet::serve
