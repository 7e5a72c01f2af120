#include "deploy/publisher.h"

#include <atomic>
#include <thread>

#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

// A state that learns and is published, as a model manager does it.
class Published {
 public:
  explicit Published(model::TrainedModel start, int readers, Publisher::Companion companion = nullptr)
      : model_(std::move(start.model)),
        description_(std::move(start.description)),
        state_(NewState()),
        publisher_(*model_, memory_, readers, std::move(companion)),
        touched_(model_->Blocks().size()) {
    EXPECT_TRUE(publisher_.Publish(*state_, description_, 0).value());
  }
  Publisher& publisher() { return publisher_; }
  const model::Model& model() const { return *model_; }
  data::Description& description() { return description_; }
  State& state() { return *state_; }
  std::unique_ptr<State> NewState() {
    return State::Make(*model_, {}, memory_, description_.standardise ? description_.moments : data::Moments()).value();
  }
  void Learn(std::uint64_t n) {
    std::vector<data::NewName> names;
    data::Rows rows = World::Row(*model_, n, &names);
    data::AddNames(names, description_, rows);
    std::vector<float> scores;
    ASSERT_TRUE(state_->Learn(*model_, rows, scores).ok());
    for (auto& set : touched_) set.Clear();
    model_->Touch(state_->parameters, rows.batch(), touched_);
    publisher_.Touch(touched_);
  }
  bool Publish(std::uint64_t version) { return publisher_.Publish(*state_, description_, version).value(); }
  // The edition is what the state is now.
  void Check(const Edition& edition) const {
    for (std::size_t b = 0; b < edition.parameters.blocks(); ++b)
      ASSERT_EQ(edition.parameters.Gather(b), state_->parameters.Gather(b)) << "block " << b;
    ASSERT_EQ(edition.description.moments.Save(), state_->moments.Save());
    for (std::size_t d = 0; d < description_.dictionaries.size(); ++d)
      ASSERT_EQ(edition.description.dictionaries[d].Serialize(), description_.dictionaries[d].Serialize());
  }
  void TakeOver(std::unique_ptr<State> state, std::vector<std::unique_ptr<Edition>> editions) {
    publisher_.Replace(std::move(editions), optimize::RowSets(model_->Blocks().size()));
    state_ = std::move(state);
  }

 private:
  optimize::HeapMemory memory_;
  std::unique_ptr<model::Model> model_;
  data::Description description_;
  std::unique_ptr<State> state_;
  Publisher publisher_;
  optimize::RowSets touched_;
};

TEST(Publisher, ShowsTheStateAsItWasWhenItWasPublished) {
  World world;
  for (int kind = 0; kind < 3; ++kind) {
    SCOPED_TRACE(kind);
    Published published(kind == 0 ? world.Dense() : kind == 1 ? world.Sparse() : world.Ratings(), 1);
    base::Random random(1, "rows");
    for (std::uint64_t version = 1; version < 60; ++version) {
      for (std::uint64_t rows = random.Below(4); rows > 0; --rows)
        ASSERT_NO_FATAL_FAILURE(published.Learn(random.Below(100)));
      ASSERT_TRUE(published.Publish(version));
      const auto edition = published.publisher().Read(0);
      ASSERT_EQ(edition->version, version);
      ASSERT_NO_FATAL_FAILURE(published.Check(*edition));
    }
  }
}

TEST(Publisher, LeavesEditionsInUseAlone) {
  World world;
  Published published(world.Dense(), 5);
  std::vector<Publisher::Reading> readings;
  std::vector<std::vector<float>> weights;
  int refused = 0;
  for (int slot = 0; slot < 5; ++slot) {
    readings.push_back(published.publisher().Read(slot));
    weights.push_back(readings.back()->parameters.Gather(0));
    published.Learn(static_cast<std::uint64_t>(slot));
    if (!published.Publish(static_cast<std::uint64_t>(slot) + 1)) ++refused;
  }
  EXPECT_GT(refused, 0);  // there are no more than so many editions
  for (std::size_t i = 0; i < readings.size(); ++i) EXPECT_EQ(readings[i]->parameters.Gather(0), weights[i]);
  readings.clear();
  EXPECT_TRUE(published.Publish(9));
  const auto edition = published.publisher().Read(0);
  EXPECT_EQ(edition->version, 9u);
  ASSERT_NO_FATAL_FAILURE(published.Check(*edition));
}

TEST(Publisher, GoesOverToAnotherStateAndKeepsTheOldOneForItsReaders) {
  World world;
  Published published(world.Ratings(), 2);
  for (std::uint64_t n = 0; n < 20; ++n) published.Learn(n);
  ASSERT_TRUE(published.Publish(1));
  auto old = std::make_optional(published.publisher().Read(0));
  const auto weights = (*old)->parameters.Gather(3);
  auto other = published.NewState();
  ASSERT_TRUE(other->CopyFrom(published.state()).ok());
  other->parameters.Row(0, 0)[0] = 77;
  std::vector<std::unique_ptr<Edition>> editions;
  for (int i = 0; i < 2; ++i)
    editions.push_back(published.publisher().NewEdition(published.model(), *other, published.description()).value());
  published.Learn(50);  // comes after the editions were made, with names they do not know
  published.TakeOver(std::move(other), std::move(editions));
  for (std::uint64_t version = 2; version < 6; ++version) {
    published.Learn(60 + version);
    ASSERT_TRUE(published.Publish(version));
    const auto edition = published.publisher().Read(1);
    ASSERT_EQ(edition->version, version);
    ASSERT_NO_FATAL_FAILURE(published.Check(*edition));
  }
  EXPECT_EQ((*old)->version, 1u);
  EXPECT_EQ((*old)->parameters.Gather(3), weights);
  old.reset();
  ASSERT_TRUE(published.Publish(7));
}

TEST(Publisher, MakesACompanionForEachEditionOnce) {
  World world;
  std::vector<const Edition*> made;
  Published published(world.Dense(), 1, [&](const Edition& edition) {
    made.push_back(&edition);
    return std::make_shared<int>(static_cast<int>(made.size()));
  });
  for (std::uint64_t version = 1; version < 20; ++version) {
    ASSERT_TRUE(published.Publish(version));
    const auto edition = published.publisher().Read(0);
    const auto place = std::find(made.begin(), made.end(), &*edition);
    ASSERT_NE(place, made.end());
    EXPECT_EQ(*static_cast<const int*>(edition->companion.get()), place - made.begin() + 1);
  }
  EXPECT_EQ(made.size(), 2u);
}

TEST(Publisher, NeverShowsAReaderAnythingHalfDone) {
  World world;
  constexpr int kReaders = 3;
  Published published(world.Sparse(), kReaders);
  for (std::uint64_t n = 0; n < 50; ++n) published.Learn(n);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> reads{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < kReaders; ++r)
    readers.emplace_back([&, r] {
      std::uint64_t newest = 0;
      do {
        const auto edition = published.publisher().Read(r);
        const std::uint32_t sum = edition->parameters.Checksum();
        if (edition->version < newest) ADD_FAILURE() << "went back";
        newest = edition->version;
        if (r == 0) std::this_thread::yield();  // one is slow
        if (edition->parameters.Checksum() != sum || edition->version != newest) ADD_FAILURE() << "changed";
        ++reads;
      } while (!stop);
    });
  for (std::uint64_t version = 1; version < 1500; ++version) {
    published.Learn(version);
    if (version % 100 == 0) {
      auto other = published.NewState();
      ASSERT_TRUE(other->CopyFrom(published.state()).ok());
      std::vector<std::unique_ptr<Edition>> editions;
      editions.push_back(published.publisher().NewEdition(published.model(), *other, published.description()).value());
      published.TakeOver(std::move(other), std::move(editions));
    }
    (void)published.Publish(version);
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_GE(reads, static_cast<std::uint64_t>(kReaders));
  EXPECT_TRUE(published.Publish(2000));
  ASSERT_NO_FATAL_FAILURE(published.Check(*published.publisher().Read(0)));
}

}  // namespace
}  // namespace freshet::deploy
