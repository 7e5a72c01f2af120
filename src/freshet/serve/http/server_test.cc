#include "serve/http/server.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <condition_variable>
#include <deque>
#include <optional>
#include <thread>

#include "base/random.h"
#include "base/scratch_testing.h"
#include "serve/http/testing.h"

namespace freshet::serve {
namespace {

using namespace std::chrono_literals;

TEST(HttpServer, AnswersOneRequestAfterTheOtherOnOneConnection) {
  TestServer server(Echo);
  TestClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.Ask(Get(Str("/a", i, "?b=c"))).body, Str("GET /a", i, " b=c "));
    const auto answer = client.Ask(Post("/x", Str("body ", i)));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, Str("POST /x  body ", i));
    EXPECT_NE(answer.head.find("Content-Type: text/plain\r\n"), std::string::npos);
    EXPECT_NE(answer.head.find("Date: "), std::string::npos);
    EXPECT_EQ(answer.head.find("Connection:"), std::string::npos);
  }
}

TEST(HttpServer, KeepsTheOrderOfPipelinedRequestsWhoeverAnswersFirst) {
  // Every other request waits and is answered by another thread, in its own time.
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::optional<Exchange>> waiting;
  TestServer server([&](Exchange exchange) {
    if (exchange.request().query != "later") return Echo(std::move(exchange));
    const std::lock_guard lock(mutex);
    waiting.emplace_back(std::move(exchange));
    changed.notify_one();
  });
  std::thread slow([&] {
    while (true) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return !waiting.empty(); });
      std::optional<Exchange> exchange = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      if (!exchange) return;
      Echo(*std::move(exchange));
    }
  });
  std::string requests;
  for (int i = 0; i < 200; ++i)
    requests += i % 3 == 0 ? Post(Str("/", i, i % 2 == 0 ? "?later" : ""), Str("b", i))
                           : Get(Str("/", i, i % 2 == 0 ? "?later" : ""));
  TestClient client(server.port());
  ASSERT_TRUE(client.Send(requests));
  for (int i = 0; i < 200; ++i) {
    const std::string expected =
        Str(i % 3 == 0 ? "POST /" : "GET /", i, " ", i % 2 == 0 ? "later" : "", " ", i % 3 == 0 ? Str("b", i) : "");
    ASSERT_EQ(client.Receive().body, expected);
  }
  {
    const std::lock_guard lock(mutex);
    waiting.emplace_back(std::nullopt);
    changed.notify_one();
  }
  slow.join();
}

TEST(HttpServer, UnderstandsRequestsHoweverTheyAreCutAndFramed) {
  TestServer server(Echo);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "cuts");
    std::string bytes;
    std::vector<std::string> expected;
    for (std::uint64_t i = 1 + random.Below(6); i > 0; --i) {
      const std::string body(random.Below(4) == 0 ? random.Below(100'000) : random.Below(50),
                             static_cast<char>('a' + i));
      if (random.Below(2) == 0) {
        bytes += Post("/p", body);
      } else {
        bytes += "POST /p HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (std::size_t at = 0; at < body.size();) {
          const std::string piece = body.substr(at, 1 + random.Below(body.size()));
          char size[20];
          std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
          bytes += size + piece + "\r\n";
          at += piece.size();
        }
        bytes += "0\r\n\r\n";
      }
      expected.push_back("POST /p  " + body);
    }
    TestClient client(server.port());
    for (std::size_t at = 0; at < bytes.size();) {
      const std::string piece = bytes.substr(at, 1 + random.Below(bytes.size()));
      ASSERT_TRUE(client.Send(piece));
      at += piece.size();
    }
    for (const std::string& one : expected) ASSERT_EQ(client.Receive().body, one);
  }
}

TEST(HttpServer, AnswersMistakesAndClosesTheConnection) {
  HttpOptions options;
  options.limits.body_bytes = 1000;
  options.limits.body_chunks = 5;
  TestServer server(Echo, options);
  const std::string chunked = "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  const struct {
    std::string bytes;
    int status;
  } cases[] = {
      {"GET / HTTP/1.1\n\n", 400},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
      {"\x16\x03\x01\x02", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 421},
      {"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
      {"GET / HTTP/1.1\r\nHost:\r\n\r\n", 421},
      {Get("/..%2f"), 400},
      {"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", 501},
      {"OPTIONS / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405},
      {Get("/", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 400},
      {Get("/", "Content-Length: 5\r\nContent-Length: 5\r\n"), 400},
      {Get("/", "Content-Length: 1001\r\n"), 413},
      {Get("/", "Content-Encoding: br\r\n"), 415},
      {Get("/", "Expect: more\r\n"), 417},
      {Get("/", "A: " + std::string(9000, 'a') + "\r\n"), 431},
      {"GET /" + std::string(9000, 'a'), 414},
      {Post("/", "a", "Origin: http://evil.example\r\n"), 403},
      {Post("/", "a", "Origin: null\r\n"), 403},
      {chunked + "3e9\r\n" + std::string(1001, 'a'), 413},
      {chunked + "zz\r\n", 400},
      {chunked + "1\r\nabc", 400},
      {chunked + "1\r\na\r\n1\r\na\r\n1\r\na\r\n1\r\na\r\n1\r\na\r\n1\r\na\r\n0\r\n\r\n", 400},
      {chunked + "0\r\nTrailer: a\r\n\r\n", 400},
      {Get("/", "Content-Length: x\r\n") + Get("/second"), 400},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(Quoted(one.bytes));
    TestClient client(server.port());
    const auto answer = client.Ask(one.bytes);
    EXPECT_EQ(answer.status, one.status);
    EXPECT_NE(answer.head.find("Connection: close"), std::string::npos);
    EXPECT_EQ(answer.body.find("{\"error\":\""), 0u) << answer.body;
    EXPECT_EQ(client.Rest(), "");  // above all, the second request is not looked at
  }
  EXPECT_EQ(server.Count("freshet_bad_input_total", "host"), 4u);
  EXPECT_EQ(server.Count("freshet_bad_input_total", "origin"), 2u);
}

TEST(HttpServer, LetsPagesOfItsOwnSendAndOthersLook) {
  TestServer server(Echo);
  TestClient client(server.port());
  EXPECT_EQ(client.Ask(Post("/", "a", "Origin: http://localhost\r\n")).status, 200);
  EXPECT_EQ(client.Ask(Get("/", "Origin: http://evil.example\r\n")).status, 200);
}

TEST(HttpServer, SpeaksHttp10) {
  TestServer server(Echo);
  TestClient once(server.port());
  ASSERT_TRUE(once.Send("GET /a HTTP/1.0\r\n\r\n"));
  const auto answer = once.Receive();
  EXPECT_EQ(answer.body, "GET /a  ");
  EXPECT_NE(answer.head.find("Connection: close"), std::string::npos);
  EXPECT_EQ(once.Rest(), "");
  TestClient again(server.port());
  for (int i = 0; i < 2; ++i) {
    const auto kept = again.Ask("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(kept.status, 200);
    EXPECT_NE(kept.head.find("Connection: keep-alive"), std::string::npos);
  }
}

TEST(HttpServer, ClosesWhenAskedTo) {
  TestServer server(Echo);
  TestClient client(server.port());
  ASSERT_TRUE(client.Send(Get("/", "Connection: close\r\n") + Get("/second")));
  EXPECT_EQ(client.Receive().status, 200);
  EXPECT_EQ(client.Receive().status, 0);
}

TEST(HttpServer, AnswersAClientThatHasEndedItsSide) {
  TestServer server(Echo);
  TestClient client(server.port());
  ASSERT_TRUE(client.Send(Post("/", "abc")));
  client.EndSending();
  EXPECT_EQ(client.Receive().body, "POST /  abc");
  EXPECT_EQ(client.Rest(), "");
}

TEST(HttpServer, SendsNoBodyForHeadAndNoContent) {
  TestServer server([](Exchange exchange) {
    const int status = exchange.request().path == "/none" ? 204 : 200;
    exchange.Send({.status = status, .body = "text"});
  });
  TestClient client(server.port());
  ASSERT_TRUE(client.Send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n" + Get("/none") + Get("/last")));
  const auto head = client.Receive(true);
  EXPECT_NE(head.head.find("Content-Length: 4"), std::string::npos);
  const auto none = client.Receive();
  EXPECT_EQ(none.status, 204);
  EXPECT_EQ(none.head.find("Content-Length"), std::string::npos);
  EXPECT_EQ(client.Receive().body, "text");
}

TEST(HttpServer, LetsAClientGoOnThatExpectsIt) {
  HttpOptions options;
  options.limits.body_bytes = 1000;
  TestServer server(Echo, options);
  TestClient client(server.port());
  ASSERT_TRUE(client.Send("POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"));
  EXPECT_EQ(client.Receive().status, 100);
  EXPECT_EQ(client.Ask("abc").body, "POST /  abc");
  EXPECT_EQ(
      client.Ask("POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3000\r\n\r\n").status,
      413);
}

TEST(HttpServer, AnswersForAHandlerThatForgets) {
  TestServer server([](Exchange) {});
  TestClient client(server.port());
  EXPECT_EQ(client.Ask(Get("/")).status, 500);
  EXPECT_EQ(client.Ask(Get("/")).status, 500);  // the connection is none the worse for it
}

TEST(HttpServer, GivesTheHandlerEveryField) {
  TestServer server([](Exchange exchange) {
    const Request& request = exchange.request();
    exchange.Send({.body = Str(request.Header("x-one"), "|", request.Header("X-TWO"), "|", request.Header("none"), "|",
                               request.content_type, "|", request.peer, "|", request.headers.size())});
  });
  TestClient client(server.port());
  EXPECT_EQ(client.Ask(Get("/", "X-One: 1\r\nx-two:\t2 \r\nContent-Type: a/b\r\n")).body, "1|2||a/b|127.0.0.1|4");
}

TEST(HttpServer, LetsNoValueAddAField) {
  TestServer server([](Exchange exchange) {
    exchange.Send({.content_type = "a/b\r\nX-Evil: 1", .headers = {{"Location", "/a\r\nX-Evil: 1\r\n\r\n<script>"}}});
  });
  TestClient client(server.port());
  const auto answer = client.Ask(Get("/"));
  EXPECT_EQ(answer.head.find("\r\nX-Evil"), std::string::npos);
  EXPECT_EQ(answer.body, "");
}

TEST(HttpServer, CarriesLargeBodiesBothWays) {
  TestServer server([](Exchange exchange) { exchange.Send({.body = std::string(exchange.request().body)}); });
  std::string body(5'000'000, 'x');
  base::Random random(1, "body");
  for (char& c : body) c = static_cast<char>(random.Next());
  TestClient client(server.port());
  for (int i = 0; i < 2; ++i) {
    std::thread sender([&] { client.Send(Post("/", body)); });
    const auto answer = client.Receive();
    sender.join();
    EXPECT_TRUE(answer.body == body);
  }
}

TEST(HttpServer, ServesManyConnectionsAtOnce) {
  TestServer server(Echo);
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 300; ++i) clients.push_back(std::make_unique<TestClient>(server.port()));
  for (int round = 0; round < 3; ++round) {
    for (auto& client : clients) ASSERT_TRUE(client->Send(Get("/a")));
    for (auto& client : clients) ASSERT_EQ(client->Receive().body, "GET /a  ");
  }
}

class TokenServerTest : public testing::Test {
 protected:
  HttpOptions Options() {
    HttpOptions options;
    options.token_file = directory_.Write("tokens", "predict reader-0123456789\nlearn teacher-0123456789\n");
    ::chmod(options.token_file.c_str(), 0600);
    return options;
  }
  static void NeedLearn(Exchange exchange) {
    if (exchange.request().path == "/health") return exchange.Send({});
    if (auto refusal = Refuse(exchange.request(), Scope::kLearn)) return exchange.Send(*std::move(refusal));
    exchange.Send({.body = "learned"});
  }
  static std::string With(std::string_view token) { return Get("/", Str("Authorization: Bearer ", token, "\r\n")); }

  base::ScratchDirectory directory_;
};

TEST_F(TokenServerTest, LetsTokensDoWhatTheirScopeAllows) {
  TestServer server(NeedLearn, Options());
  TestClient client(server.port());
  EXPECT_EQ(client.Ask(Get("/health")).status, 200);
  const auto missing = client.Ask(Get("/"));
  EXPECT_EQ(missing.status, 401);
  EXPECT_NE(missing.head.find("WWW-Authenticate: Bearer"), std::string::npos);
  EXPECT_EQ(client.Ask(With("reader-0123456789")).status, 403);
  EXPECT_EQ(client.Ask(With("teacher-0123456789")).status, 200);
  EXPECT_EQ(client.Ask(With("teacher-0123456789")).status, 200);  // known by now
  EXPECT_EQ(client.Ask(With("teacher-0123456780")).status, 401);
  EXPECT_EQ(client.Ask(Get("/")).status, 401);
  EXPECT_EQ(server.Count("freshet_auth_failures_total", "missing"), 2u);
  EXPECT_EQ(server.Count("freshet_auth_failures_total", "scope"), 1u);
  EXPECT_EQ(server.Count("freshet_auth_failures_total", "wrong"), 1u);
  server.Stop(1s);
  EXPECT_EQ(server.logged().find("teacher"), std::string::npos);
}

TEST_F(TokenServerTest, StopsGuessersAndNobodyElse) {
  TestServer server(NeedLearn, Options());
  TestClient polite(server.port(), "127.0.0.2");
  EXPECT_EQ(polite.Ask(With("teacher-0123456789")).status, 200);
  int limited = 0;
  for (int i = 0; i < 30; ++i) {
    TestClient guesser(server.port(), "127.0.0.3");
    const int status = guesser.Ask(With(Str("guess-", i))).status;
    ASSERT_TRUE(status == 401 || status == 429);
    limited += status == 429;
  }
  EXPECT_GT(limited, 0);
  EXPECT_EQ(polite.Ask(With("teacher-0123456789")).status, 200);
}

TEST_F(TokenServerTest, TakesNoLargeBodyFromStrangers) {
  TestServer server(NeedLearn, Options());
  TestClient client(server.port());
  EXPECT_EQ(client.Ask("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n").status, 401);
}

TEST(HttpServer, AllowsEverythingWithoutATokenFile) {
  TestServer server(
      [](Exchange exchange) { exchange.Send({.body = exchange.request().scope == Scope::kAdmin ? "admin" : "less"}); });
  TestClient client(server.port());
  EXPECT_EQ(client.Ask(Get("/", "Authorization: Bearer whatever\r\n")).body, "admin");
}

TEST(HttpServer, RefusesToListenUnsafely) {
  base::SystemClock clock;
  base::Log log(clock, [](std::string_view) {});
  base::Metrics metrics;
  const auto listen = [&](const HttpOptions& options) {
    return HttpServer::Listen(options, clock, log, metrics, Echo);
  };
  HttpOptions open;
  open.address = "0.0.0.0";
  EXPECT_EQ(listen(open).error().code, Code::kInvalid);
  open.token_file = "tokens";
  EXPECT_NE(listen(open).error().text.find("certificate"), std::string::npos);
  HttpOptions half;
  half.certificate = "c.pem";
  EXPECT_EQ(listen(half).error().code, Code::kInvalid);
  half.key = "k.pem";
  EXPECT_EQ(listen(half).error().code, Code::kNotFound);
  HttpOptions named;
  named.address = "localhost";
  EXPECT_NE(listen(named).error().text.find("127.0.0.1"), std::string::npos);
  HttpOptions none;
  none.limits.connections = 0;
  EXPECT_EQ(listen(none).error().code, Code::kInvalid);
  const auto first = listen({});
  HttpOptions taken;
  taken.port = first.value()->port();
  EXPECT_EQ(listen(taken).error().code, Code::kBusy);
}

}  // namespace
}  // namespace freshet::serve
