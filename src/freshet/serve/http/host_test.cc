#include "serve/http/host.h"

#include <gtest/gtest.h>

namespace freshet::serve {
namespace {

TEST(HostRules, AllowLoopbackAndTheAddressOfArrival) {
  const HostRules rules({});
  for (const char* host :
       {"localhost", "LOCALHOST:80", "127.0.0.1", "127.8.9.1:1234", "[::1]", "[::1]:80", "10.0.0.7:80"})
    EXPECT_TRUE(rules.AllowsHost(host, "10.0.0.7")) << host;
  for (const char* host : {"", "evil.example", "127.0.0.1.evil.example", "localhost.evil", "10.0.0.8", "[::1", "[::2]",
                           "localhost:80x", "localhost:80:80", "localhost.", "127.1", "2130706433", "[::1]x"})
    EXPECT_FALSE(rules.AllowsHost(host, "10.0.0.7")) << host;
}

TEST(HostRules, AllowTheNamesTheyAreGiven) {
  const HostRules rules({"models.example"});
  EXPECT_TRUE(rules.AllowsHost("Models.Example:443", "10.0.0.7"));
  EXPECT_FALSE(rules.AllowsHost("x.models.example", "10.0.0.7"));
  EXPECT_TRUE(HostRules({"*"}).AllowsHost("any.example", "10.0.0.7"));
  EXPECT_FALSE(HostRules({"*"}).AllowsHost("", "10.0.0.7"));
}

TEST(HostRules, TakeAnOriginForOursOnlyWhenItIsTheHost) {
  EXPECT_TRUE(HostRules::SameOrigin("http://localhost:80", "localhost:80"));
  EXPECT_TRUE(HostRules::SameOrigin("https://LOCALHOST:80", "localhost:80"));
  for (const char* origin : {"null", "", "http://", "localhost:80", "http://localhost", "http://localhost:81",
                             "ftp://localhost:80", "http://localhost:80.evil", "http://evil"})
    EXPECT_FALSE(HostRules::SameOrigin(origin, "localhost:80")) << origin;
}

TEST(Loopback, IsToldFromOtherAddresses) {
  EXPECT_TRUE(IsLoopbackAddress("127.0.0.1"));
  EXPECT_TRUE(IsLoopbackAddress("127.255.0.3"));
  EXPECT_TRUE(IsLoopbackAddress("::1"));
  for (const char* address : {"0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "localhost", ""})
    EXPECT_FALSE(IsLoopbackAddress(address)) << address;
  EXPECT_TRUE(IsNumericAddress("::"));
  EXPECT_TRUE(IsNumericAddress("10.0.0.1"));
  EXPECT_FALSE(IsNumericAddress("localhost"));
}

}  // namespace
}  // namespace freshet::serve
