#include "serve/http/stream.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <optional>
#include <thread>

#include "base/scratch_testing.h"
#include "serve/http/testing.h"

namespace freshet::serve {
namespace {

using namespace std::chrono_literals;

// Hands the streams it is asked for to the test.
class StreamsTest : public testing::Test {
 protected:
  void Handle(Exchange exchange) {
    if (exchange.request().path != "/events") return Echo(std::move(exchange));
    Stream stream = exchange.OpenStream("text/event-stream");
    const std::lock_guard lock(mutex_);
    streams_.push_back(std::move(stream));
  }
  Stream Next() {
    const auto there = [this] {
      const std::lock_guard lock(mutex_);
      return !streams_.empty();
    };
    CHECK(Eventually(there));
    const std::lock_guard lock(mutex_);
    Stream stream = std::move(streams_.back());
    streams_.pop_back();
    return stream;
  }

  std::mutex mutex_;
  std::vector<Stream> streams_;
  TestServer server_{[this](Exchange exchange) { Handle(std::move(exchange)); }};
};

TEST_F(StreamsTest, DeliverWhatIsWrittenAndLeaveTheConnectionUsable) {
  TestClient client(server_.port());
  ASSERT_TRUE(client.Send(Get("/events")));
  Stream stream = Next();
  EXPECT_TRUE(stream.Write("data: 1\n\n"));
  EXPECT_NE(client.Await("9\r\ndata: 1\n\n\r\n"), std::string::npos);
  EXPECT_TRUE(stream.Write(""));
  EXPECT_TRUE(stream.Write("data: 2\n\n"));
  stream.Close();
  EXPECT_FALSE(stream.Write("data: 3\n\n"));
  const auto answer = client.Receive();
  EXPECT_NE(answer.head.find("text/event-stream"), std::string::npos);
  EXPECT_EQ(answer.body, "9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n");
  EXPECT_EQ(client.Ask(Get("/after")).body, "GET /after  ");
}

TEST_F(StreamsTest, EndWithTheConnectionForHttp10) {
  TestClient client(server_.port());
  ASSERT_TRUE(client.Send("GET /events HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
  {
    Stream stream = Next();
    EXPECT_TRUE(stream.Write("one"));
    EXPECT_TRUE(stream.Write("two"));
  }
  const std::string all = client.Rest();
  EXPECT_EQ(all.find("chunked"), std::string::npos);
  EXPECT_TRUE(all.ends_with("\r\n\r\nonetwo")) << all;
}

TEST_F(StreamsTest, HaveNoBodyForHead) {
  TestClient client(server_.port());
  ASSERT_TRUE(client.Send("HEAD /events HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  Stream stream = Next();
  EXPECT_EQ(client.Receive(true).status, 200);
  EXPECT_EQ(client.Ask(Get("/after")).body, "GET /after  ");
  EXPECT_TRUE(Eventually([&] { return !stream.Write("x"); }));
}

TEST_F(StreamsTest, NoticeThatTheClientIsGone) {
  auto client = std::make_unique<TestClient>(server_.port());
  ASSERT_TRUE(client->Send(Get("/events")));
  Stream stream = Next();
  ASSERT_TRUE(stream.Write("data: 1\n\n"));
  client.reset();
  EXPECT_TRUE(Eventually([&] { return !stream.Write("data: 2\n\n"); }));
}

TEST_F(StreamsTest, GiveUpAClientThatDoesNotKeepUp) {
  TestClient client(server_.port());
  ASSERT_TRUE(client.Send(Get("/events")));
  Stream stream = Next();
  const std::string piece(1 << 16, 'x');
  std::size_t written = 0;
  while (stream.Write(piece)) {
    written += piece.size();
    ASSERT_LT(written, 100u << 20);  // buffers of the system take some
  }
  TestClient other(server_.port());
  EXPECT_EQ(other.Ask(Get("/a")).status, 200);
}

TEST_F(StreamsTest, EndWhenTheServerStops) {
  TestClient client(server_.port());
  ASSERT_TRUE(client.Send(Get("/events")));
  Stream stream = Next();
  ASSERT_TRUE(stream.Write("data: 1\n\n"));
  ASSERT_NE(client.Await("data: 1"), std::string::npos);
  server_.Stop(5s);
  EXPECT_FALSE(stream.Write("data: 2\n\n"));
  EXPECT_TRUE(client.Rest().ends_with("0\r\n\r\n"));
}

// A server whose every answer but those for /held and /plain is a stream that stays open.
class FullHouse : public testing::Test {
 protected:
  void Handle(Exchange exchange) {
    const std::lock_guard lock(mutex_);
    if (exchange.request().path == "/held") return held_.push_back(std::move(exchange));
    if (exchange.request().path != "/events") return Echo(std::move(exchange));
    streams_.push_back(exchange.OpenStream("text/event-stream"));
    EXPECT_TRUE(streams_.back().Write("data: 1\n\n"));
  }
  std::unique_ptr<TestServer> Serve(const HttpOptions& options) {
    return std::make_unique<TestServer>([this](Exchange exchange) { Handle(std::move(exchange)); }, options);
  }
  // Clients that sit on their connections, each once the one before is seated.
  void Crowd(const TestServer& server, int count, const std::string& path) {
    for (int i = 0; i < count; ++i) {
      const std::size_t before = Seated();
      crowd_.push_back(std::make_unique<TestClient>(server.port()));
      ASSERT_TRUE(crowd_.back()->Send(Get(path)));
      ASSERT_TRUE(Eventually([&] { return Seated() > before; }));
    }
  }
  std::size_t Seated() {
    const std::lock_guard lock(mutex_);
    return held_.size() + streams_.size();
  }

  std::mutex mutex_;
  std::vector<Stream> streams_;
  std::vector<Exchange> held_;
  std::vector<std::unique_ptr<TestClient>> crowd_;
};

TEST_F(FullHouse, TheOldestStreamGoesForANewcomer) {
  HttpOptions options;
  options.limits.connections = 8;
  const auto server = Serve(options);
  Crowd(*server, 8, "/events");
  EXPECT_EQ(TestClient(server->port()).Ask(Get("/plain")).status, 200);
  EXPECT_TRUE(crowd_[0]->Rest().ends_with("0\r\n\r\n"));
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 1; i < 8; ++i) EXPECT_TRUE(streams_[i].Write("data: 2\n\n")) << i;
}

TEST_F(FullHouse, BeyondTheirBudgetTheOldestStreamEnds) {
  HttpOptions options;
  options.limits.streams = 3;
  const auto server = Serve(options);
  Crowd(*server, 5, "/events");
  for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(crowd_[i]->Rest().ends_with("0\r\n\r\n")) << i;
  EXPECT_EQ(server->Count("freshet_rejected_connections_total", "stream_evicted"), 2u);
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 2; i < 5; ++i) EXPECT_TRUE(streams_[i].Write("data: 2\n\n")) << i;
}

TEST_F(FullHouse, WhenNobodyCanGoWhatHasReservedSeatsIsAnswered) {
  const base::ScratchDirectory directory;
  HttpOptions options;
  options.limits.connections = 4;
  options.limits.reserved_connections = 2;
  options.reserved_paths = {"/health"};
  options.token_file =
      directory.Write("tokens", "admin boss boss-token-0123456789\npredict one one-token-0123456789\n");
  chmod(options.token_file.c_str(), 0600);
  const auto server = Serve(options);
  Crowd(*server, 4, "/held");
  const auto ask = [&](const std::string& path, const std::string& more = "") {
    return TestClient(server->port()).Ask(Get(path, more)).status;
  };
  EXPECT_EQ(ask("/health"), 200);
  EXPECT_EQ(ask("/plain"), 503);
  EXPECT_EQ(ask("/plain", "Authorization: Bearer one-token-0123456789\r\n"), 503);
  EXPECT_EQ(ask("/plain", "Authorization: Bearer boss-token-0123456789\r\n"), 200);
  // Who only sits there goes for those who ask.
  for (int i = 0; i < 6; ++i) crowd_.push_back(std::make_unique<TestClient>(server->port()));
  EXPECT_EQ(ask("/health"), 200);
  const std::lock_guard lock(mutex_);
  held_[0].Send({});
  EXPECT_EQ(crowd_[0]->Receive().status, 200);
}

TEST(HttpStreams, EndWhenTheirTokenIsRevoked) {
  const base::ScratchDirectory directory;
  const auto write = [&](const std::string& text) {
    const std::string path = directory.Write("tokens", text);
    chmod(path.c_str(), 0600);
    return path;
  };
  HttpOptions options;
  options.token_file = write("predict one one-token-0123456789\npredict two two-token-0123456789\n");
  std::mutex mutex;
  std::vector<Stream> streams;
  TestServer server(
      [&](Exchange exchange) {
        Stream stream = exchange.OpenStream("text/event-stream");
        EXPECT_TRUE(stream.Write("data: 1\n\n"));
        const std::lock_guard lock(mutex);
        streams.push_back(std::move(stream));
      },
      options);
  TestClient revoked(server.port()), kept(server.port());
  ASSERT_TRUE(revoked.Send(Get("/events", "Authorization: Bearer one-token-0123456789\r\n")));
  ASSERT_TRUE(kept.Send(Get("/events", "Authorization: Bearer two-token-0123456789\r\n")));
  ASSERT_NE(revoked.Await("data: 1"), std::string::npos);
  ASSERT_NE(kept.Await("data: 1"), std::string::npos);
  write("predict two two-token-0123456789\n");
  EXPECT_TRUE(revoked.Rest().ends_with("0\r\n\r\n"));  // within the client's patience
  const std::lock_guard lock(mutex);
  int open = 0;
  for (Stream& stream : streams) open += stream.Write("data: 2\n\n") ? 1 : 0;
  EXPECT_EQ(open, 1);
  EXPECT_NE(kept.Await("data: 2"), std::string::npos);
}

TEST(HttpStop, LetsRequestsUnderWayFinishAndClosesTheRest) {
  std::mutex mutex;
  std::optional<Exchange> held;
  std::atomic<bool> there{false};
  TestServer server([&](Exchange exchange) {
    if (exchange.request().path != "/held") return Echo(std::move(exchange));
    const std::lock_guard lock(mutex);
    held.emplace(std::move(exchange));
    there = true;
  });
  TestClient busy(server.port()), idle(server.port());
  EXPECT_EQ(idle.Ask(Get("/")).status, 200);
  ASSERT_TRUE(busy.Send(Get("/held")));
  ASSERT_TRUE(Eventually([&] { return there.load(); }));
  server.server().Stop(30s);
  EXPECT_EQ(idle.Rest(), "");
  TestClient late(server.port());
  EXPECT_FALSE(late.connected() && late.Ask(Get("/")).status == 200);
  {
    const std::lock_guard lock(mutex);
    held->Send({.body = "done"});
  }
  const auto answer = busy.Receive();
  EXPECT_EQ(answer.body, "done");
  EXPECT_NE(answer.head.find("Connection: close"), std::string::npos);
  server.Join();  // long before the grace is over
}

TEST(HttpStop, CutsWhatIsLeftWhenTheGraceIsOver) {
  std::mutex mutex;
  std::vector<Exchange> held;
  std::vector<Stream> streams;
  {
    TestServer server([&](Exchange exchange) {
      const std::lock_guard lock(mutex);
      held.push_back(std::move(exchange));
    });
    TestClient client(server.port()), other(server.port());
    ASSERT_TRUE(client.Send(Post("/kept", "body")) && other.Send(Get("/other")));
    ASSERT_TRUE(Eventually([&] {
      const std::lock_guard lock(mutex);
      return held.size() == 2;
    }));
    server.Stop(50ms);
    EXPECT_EQ(client.Rest(), "");
  }
  for (Exchange& exchange : held) {  // both outlive their server
    if (exchange.request().path == "/kept") {
      EXPECT_EQ(exchange.request().body, "body");
      exchange.Send({});
    } else {
      streams.push_back(exchange.OpenStream("text/plain"));
    }
  }
  held.clear();
  EXPECT_FALSE(streams.at(0).Write("x"));
}

TEST(HttpStop, CanBeAskedForByAHandlerAndBeforeAnyRun) {
  HttpServer* stopped = nullptr;
  TestServer server(
      [&](Exchange exchange) {
        stopped->Stop(5s);
        exchange.Send({.body = "bye"});
      },
      {}, 0);
  stopped = &server.server();
  std::thread loop([&] { server.server().Run(); });
  TestClient client(server.port());
  EXPECT_EQ(client.Ask(Get("/")).body, "bye");
  loop.join();
  server.server().Run();  // nothing to do any more
}

}  // namespace
}  // namespace freshet::serve
