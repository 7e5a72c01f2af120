// A server that does nothing but answer: how fast is HTTP itself? See bench/serve_http.py.
//   http_echo PORT THREADS     prints "listening" and stops at the end of its standard input

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "serve/http/server.h"

int main(int argc, char** argv) {
  using namespace freshet;
  if (argc != 3) return std::fprintf(stderr, "usage: http_echo PORT THREADS\n"), 2;
  base::SystemClock clock;
  base::Log log(clock, [](std::string_view line) { std::fprintf(stderr, "%.*s\n", int(line.size()), line.data()); });
  base::Metrics metrics;
  serve::HttpOptions options;
  options.port = std::atoi(argv[1]);
  const auto server = serve::HttpServer::Listen(options, clock, log, metrics, [](serve::Exchange exchange) {
    const std::string_view body = exchange.request().body;
    exchange.Send({.body = body.empty() ? "{\"outputs\":[0.123456789]}" : std::string(body)});
  });
  if (!server.ok()) return std::fprintf(stderr, "%s\n", server.error().text.c_str()), 1;
  std::vector<std::thread> threads;
  for (int i = 0; i < std::atoi(argv[2]); ++i) threads.emplace_back([&] { server.value()->Run(); });
  std::puts("listening");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  server.value()->Stop(std::chrono::seconds(2));
  for (std::thread& thread : threads) thread.join();
  return 0;
}
