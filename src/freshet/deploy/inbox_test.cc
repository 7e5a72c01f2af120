#include "deploy/inbox.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace freshet::deploy {
namespace {

Request Rows(std::size_t count, std::vector<Code>* refusals = nullptr) {
  Request request;
  request.rows.ClearRows();
  for (std::size_t r = 0; r < count; ++r) request.rows.labels.Append(1);
  if (refusals != nullptr)
    request.done = [refusals](const Result<LearnReply>& result) { refusals->push_back(result.error().code); };
  return request;
}

class InboxTest : public testing::Test {
 protected:
  base::SystemClock clock_;
  base::Bell bell_{clock_};
  Inbox inbox_{10, bell_};
};

TEST_F(InboxTest, HandsOutACommandAfterTheRequestsThatWerePostedBeforeIt) {
  inbox_.Post([] {});
  inbox_.Post(Rows(1));
  inbox_.Post([] {});
  EXPECT_EQ(inbox_.TakeCommands().size(), 1u);
  EXPECT_EQ(inbox_.TakeCommands().size(), 0u);
  EXPECT_EQ(inbox_.TakeRequests().size(), 1u);
  inbox_.Post(Rows(1));
  EXPECT_EQ(inbox_.TakeCommands().size(), 1u) << "it need not wait for those that came later";
}

TEST_F(InboxTest, RefusesRowsUntilThoseBeforeThemAreWritten) {
  std::vector<Code> refusals;
  inbox_.Post(Rows(10, &refusals));
  inbox_.Post(Rows(2, &refusals));
  EXPECT_EQ(refusals, std::vector{Code::kBusy});
  inbox_.Post(Rows(2));  // nobody to tell
  inbox_.Post(Rows(0, &refusals));
  EXPECT_EQ(inbox_.TakeRequests().size(), 2u) << "what brings no rows is never refused";
  inbox_.Post(Rows(10, &refusals));
  EXPECT_EQ(refusals.size(), 2u) << "taken is not written";
  inbox_.Written();
  inbox_.Post(Rows(10, &refusals));
  EXPECT_EQ(refusals.size(), 2u);
}

TEST(Inbox, HandsOutALargeRequestAloneAndSmallOnesTogether) {
  base::SystemClock clock;
  base::Bell bell(clock);
  Inbox inbox(100'000, bell);
  for (const std::size_t rows : {20'000, 1, 8000, 1000, 1}) inbox.Post(Rows(rows));
  std::vector<std::size_t> rounds;
  for (auto taken = inbox.TakeRequests(); !taken.empty(); taken = inbox.TakeRequests()) rounds.push_back(taken.size());
  EXPECT_EQ(rounds, (std::vector<std::size_t>{1, 2, 2}));
}

}  // namespace
}  // namespace freshet::deploy
