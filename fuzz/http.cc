#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/simulated_clock.h"
#include "serve/http/loop.h"

namespace {

using namespace freshet;

// What the server promises its handlers of every request it lets through.
void CheckRequest(const serve::Request& request) {
  CHECK(request.path.starts_with('/'));
  CHECK(request.path.find("..") == request.path.npos);
  for (const char c : request.path) CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f && c != '\\');
  for (const serve::HeaderField& field : request.headers) {
    CHECK(!field.name.empty());
    CHECK(field.value.find_first_of(std::string_view("\r\n\0", 3)) == field.value.npos);
  }
  CHECK(request.body.size() <= 1000);
}

// All that comes back when the bytes are sent in two parts, until the connection is closed.
std::string Converse(std::string_view first, std::string_view second) {
  base::ManualClock clock;
  base::Log log(clock, [](std::string_view) {});
  base::Metrics metrics;
  serve::HttpOptions options;
  options.limits.header_bytes = 512;
  options.limits.body_bytes = 1000;
  options.limits.body_chunks = 20;
  serve::HttpSite site(options, clock, log, metrics, [](serve::Exchange exchange) {
    const serve::Request& request = exchange.request();
    CheckRequest(request);
    exchange.Send({.body = Str(request.method, request.path, request.query, request.body)});
  });
  auto loop = serve::HttpLoop::Make(site, nullptr);
  CHECK(loop.ok());
  int ends[2];
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
  CHECK(site.gate.Enter("127.0.0.1") == serve::HttpGate::Verdict::kWelcome);
  loop.value()->Adopt({.descriptor = ends[0], .peer = "127.0.0.1", .local = "127.0.0.1"});

  std::string answers;
  bool open = true;
  const auto turn = [&] {
    char bytes[4096];
    loop.value()->Turn(std::chrono::milliseconds(0));
    ssize_t got;
    while ((got = ::recv(ends[1], bytes, sizeof bytes, 0)) > 0) answers.append(bytes, static_cast<std::size_t>(got));
    open = got != 0;
  };
  for (const std::string_view part : {first, second}) {
    ::send(ends[1], part.data(), part.size(), MSG_NOSIGNAL);
    turn();
  }
  ::shutdown(ends[1], SHUT_WR);
  for (int i = 0; open && i < 1000; ++i) turn();
  CHECK(!open);
  ::close(ends[1]);
  return answers;
}

// Whether a client is told to go on depends on how much has come by then.
std::string WithoutContinue(std::string answers) {
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  for (std::size_t at; (at = answers.find(kContinue)) != answers.npos;) answers.erase(at, kContinue.size());
  return answers;
}

}  // namespace

// Any bytes as what a client sends: the answers are answers, and do not depend on where the bytes were cut.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 16'384) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = WithoutContinue(Converse(bytes, ""));
  CHECK(whole.empty() || whole.starts_with("HTTP/1.1 "));
  const std::size_t cut = bytes.empty() ? 0 : data[0] * bytes.size() / 256;
  CHECK(WithoutContinue(Converse(bytes.substr(0, cut), bytes.substr(cut))) == whole);
  return 0;
}
