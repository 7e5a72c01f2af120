#include "launch_plan.h"

#include <gtest/gtest.h>

namespace freshet::cli {
namespace {

// "rank@host node local/size", and ! for those on other machines.
std::string Seats(int workers, const std::string& hosts) {
  const auto seats = MakeSeats(workers, hosts, "desk");
  if (!seats.ok()) return seats.error().text;
  std::vector<std::string> parts;
  for (const Seat& seat : seats.value())
    parts.push_back(Str(seat.rank, "@", seat.host, " ", seat.node, " ", seat.local_rank, "/", seat.local_size,
                        seat.here ? "" : "!"));
  return Join(parts, ", ");
}

TEST(LaunchPlan, FillsHostsInTheOrderTheyAreNamed) {
  EXPECT_EQ(Seats(2, ""), "0@localhost 0 0/2, 1@localhost 0 1/2");
  EXPECT_EQ(Seats(0, "desk:2,b"), "0@desk 0 0/2, 1@desk 0 1/2, 2@b 1 0/1!");
  EXPECT_EQ(Seats(3, "a:2,me@b:4"), "0@a 0 0/2!, 1@a 0 1/2!, 2@me@b 1 0/1!");
  EXPECT_EQ(Seats(1, "a:2,b:4"), "0@a 0 0/1!");
}

TEST(LaunchPlan, RefusesHostsThatCannotBe) {
  EXPECT_NE(Seats(0, "").find("-n 4"), std::string::npos);
  EXPECT_NE(Seats(5, "a:2,b:2").find("take 4 workers"), std::string::npos);
  EXPECT_NE(Seats(0, "a:2,a:2").find("named twice"), std::string::npos);
  for (const char* const bad :
       {",", "a:", "a:0", "a:-1", "a:x", ":2", "-oProxyCommand=x", "a b", "a;b", "a:2:3", "$(x)"})
    EXPECT_NE(Seats(0, bad).find("expected a name"), std::string::npos) << bad << ": " << Seats(0, bad);
}

TEST(LaunchPlan, WorkersMeetWhereAllOfThemCanGo) {
  const auto meeting = [](const char* hosts) { return MeetingHost(MakeSeats(0, hosts, "desk").value(), "desk"); };
  EXPECT_EQ(meeting("localhost:2,desk:2"), "127.0.0.1");
  EXPECT_EQ(meeting("localhost:2,b:2"), "desk");
  EXPECT_EQ(meeting("me@b:2,localhost:2"), "b");
}

TEST(LaunchPlan, QuotesWhatAShellWouldTakeApart) {
  EXPECT_EQ(ShellQuoted("a b"), "'a b'");
  EXPECT_EQ(ShellQuoted("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(ShellQuoted(""), "''");
}

}  // namespace
}  // namespace freshet::cli
