#include "data/generate.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>

#include "base/random.h"
#include "data/buffer.h"
#include "data/grammar.h"

namespace freshet::data {
namespace {

// The draws that belong to one thing (a row, a feature, a user), named by a key and its number. Four draws cost one
// block of the cipher; base::Random pays one for each.
class Draws {
 public:
  Draws(std::uint64_t key, std::uint64_t number) : key_(key), number_(number) {}

  std::uint32_t Bits() {
    if (used_ == block_.size()) {
      block_ = base::Philox(key_, number_, blocks_++);
      used_ = 0;
    }
    return block_[used_++];
  }
  double Uniform() { return Bits() * 0x1p-32; }  // [0, 1)
  std::uint32_t Below(std::uint32_t end) { return static_cast<std::uint32_t>(std::uint64_t{Bits()} * end >> 32); }
  bool Chance(double probability) { return Uniform() < probability; }
  // Mean 0, variance 1, near enough to normal (within 2 sqrt 3): the sum of four uniform numbers, at one block each.
  double NearNormal() { return (Uniform() + Uniform() + Uniform() + Uniform() - 2) * std::numbers::sqrt3; }

 private:
  const std::uint64_t key_, number_;
  std::uint64_t blocks_ = 0;
  std::array<std::uint32_t, 4> block_;
  std::size_t used_ = block_.size();
};

std::uint64_t KeyOf(std::uint64_t seed, std::string_view purpose) { return base::Hash64(purpose, seed); }

// Each writes at `at` and returns where it stopped.
char* Put(char* at, std::string_view text) { return std::copy(text.begin(), text.end(), at); }
char* PutWhole(char* at, std::uint64_t number) { return std::to_chars(at, at + 20, number).ptr; }

// Numbers with four decimals are drawn and kept as whole ten-thousandths, so that the label fits what is written.
constexpr std::uint32_t kOne = 10'000;

char* PutTenThousandths(char* at, std::uint32_t number) {
  at = PutWhole(at, number / kOne);
  std::uint32_t fraction = number % kOne;
  if (fraction == 0) return at;
  *at++ = '.';
  for (std::uint32_t unit = kOne / 10; fraction > 0; fraction %= unit, unit /= 10)
    *at++ = static_cast<char>('0' + fraction / unit);
  return at;
}

// Makes the rows of one kind. Row n depends on the options and n alone.
class RowMaker {
 public:
  virtual ~RowMaker() = default;
  virtual std::string Header() const { return ""; }
  virtual std::size_t longest_row_bytes() const = 0;
  virtual char* PutRow(std::uint64_t n, char* at) const = 0;
};

std::uint64_t DriftRows(const GenerateOptions& options) {
  return std::max<std::uint64_t>(1, options.drift_rows > 0 ? options.drift_rows : (options.rows + 3) / 4);
}

class Sea final : public RowMaker {
 public:
  explicit Sea(const GenerateOptions& options) : key_(KeyOf(options.seed, "sea")), concept_rows_(DriftRows(options)) {}

  std::string Header() const override { return "x1,x2,x3,label\n"; }
  std::size_t longest_row_bytes() const override { return 3 * 8 + 2; }

  char* PutRow(std::uint64_t n, char* at) const override {
    static constexpr std::array<std::uint32_t, 4> kThetas = {80'000, 90'000, 70'000, 95'000};  // ten-thousandths
    Draws draws(key_, n);
    std::array<std::uint32_t, 3> x;
    for (std::uint32_t& value : x) {
      value = draws.Below(10 * kOne + 1);
      at = PutTenThousandths(at, value);
      *at++ = ',';
    }
    const bool above = x[0] + x[1] > kThetas[n / concept_rows_ % kThetas.size()];
    return Put(at, above != draws.Chance(0.10) ? "1\n" : "0\n");
  }

 private:
  const std::uint64_t key_, concept_rows_;
};

// The plane's normal turns in a plane of its own, spanned by two random directions: w(n) = a cos(angle) + b sin(angle).
// A row's label is which side of the plane through (1/2, …, 1/2) it is on, so that both labels are equally likely.
class Hyperplane final : public RowMaker {
 public:
  explicit Hyperplane(const GenerateOptions& options)
      : key_(KeyOf(options.seed, "hyperplane")),
        quarter_rows_(DriftRows(options)),
        a_(Direction(KeyOf(options.seed, "hyperplane direction"), 0, options.features)),
        b_(Direction(KeyOf(options.seed, "hyperplane direction"), 1, options.features)) {
    double shared = 0;
    for (std::size_t j = 0; j < a_.size(); ++j) shared += a_[j] * b_[j];
    for (std::size_t j = 0; j < a_.size(); ++j) b_[j] -= shared * a_[j];
    Normalise(b_);
  }

  std::string Header() const override {
    std::string header;
    for (std::size_t j = 0; j < a_.size(); ++j) header += Str("x", j + 1, ",");
    return header + "label\n";
  }
  std::size_t longest_row_bytes() const override { return a_.size() * 7 + 2; }

  char* PutRow(std::uint64_t n, char* at) const override {
    const double turns = static_cast<double>(n % (4 * quarter_rows_)) / static_cast<double>(4 * quarter_rows_);
    const double cosine = std::cos(2 * std::numbers::pi * turns), sine = std::sin(2 * std::numbers::pi * turns);
    Draws draws(key_, n);
    double side = 0;
    for (std::size_t j = 0; j < a_.size(); ++j) {
      const std::uint32_t x = draws.Below(kOne + 1);
      side += (a_[j] * cosine + b_[j] * sine) * (x * (1.0 / kOne) - 0.5);
      at = PutTenThousandths(at, x);
      *at++ = ',';
    }
    return Put(at, (side > 0) != draws.Chance(0.05) ? "1\n" : "0\n");
  }

 private:
  static std::vector<double> Direction(std::uint64_t key, std::uint64_t number, std::size_t size) {
    Draws draws(key, number);
    std::vector<double> direction(size);
    for (double& value : direction) value = draws.NearNormal();
    Normalise(direction);
    return direction;
  }
  static void Normalise(std::vector<double>& direction) {
    double squares = 0;
    for (const double value : direction) squares += value * value;
    for (double& value : direction) value /= std::sqrt(squares);
  }

  const std::uint64_t key_, quarter_rows_;
  std::vector<double> a_, b_;  // of length 1 and at a right angle
};

class UrlLike final : public RowMaker {
 public:
  explicit UrlLike(const GenerateOptions& options)
      : rows_key_(KeyOf(options.seed, "url-like")), weights_key_(KeyOf(options.seed, "url-like weight")) {
    // The threshold that a third of the rows are above, measured on rows that are never written.
    constexpr std::size_t kMeasured = 8192;
    const std::uint64_t key = KeyOf(options.seed, "url-like threshold");
    std::vector<double> scores(kMeasured);
    for (std::size_t n = 0; n < kMeasured; ++n) {
      Draws draws(key, n);
      scores[n] = Score(Draw(draws));
    }
    const auto at = scores.begin() + kMeasured * 2 / 3;
    std::nth_element(scores.begin(), at, scores.end());
    threshold_ = *at;
  }

  std::size_t longest_row_bytes() const override { return 4 + kReals * 10 + kBinaries * 10; }

  char* PutRow(std::uint64_t n, char* at) const override {
    Draws draws(rows_key_, n);
    const Row row = Draw(draws);
    const bool positive = (Score(row) > threshold_) != draws.Chance(0.03);
    at = Put(at, positive ? "+1" : "-1");
    for (std::size_t i = 0; i < kReals; ++i) {
      *at++ = ' ';
      at = PutWhole(at, row.real[i]);
      *at++ = ':';
      at = PutTenThousandths(at, row.value[i]);
    }
    for (std::size_t i = 0; i < row.binaries; ++i) {
      *at++ = ' ';
      at = PutWhole(at, row.binary[i]);
      at = Put(at, ":1");
    }
    *at++ = '\n';
    return at;
  }

 private:
  static constexpr std::uint32_t kFeatures = 3'231'961;
  static constexpr std::uint32_t kRealFeatures = 64;  // 1 … 64; the others are binary
  static constexpr std::size_t kReals = 20, kBinaries = 80;

  struct Row {  // features ascend
    std::array<std::uint32_t, kReals> real, value;
    std::array<std::uint32_t, kBinaries> binary;
    std::size_t binaries;
  };

  static Row Draw(Draws& draws) {
    Row row;
    // Floyd's way to draw 20 of 64, each set as likely as any other; the set is the bits of a word.
    std::uint64_t chosen = 0;
    for (std::uint32_t last = kRealFeatures - kReals; last < kRealFeatures; ++last) {
      const std::uint64_t drawn = std::uint64_t{1} << draws.Below(last + 1);
      chosen |= (chosen & drawn) == 0 ? drawn : std::uint64_t{1} << last;
    }
    for (std::size_t i = 0; i < kReals; ++i, chosen &= chosen - 1) {
      row.real[i] = static_cast<std::uint32_t>(__builtin_ctzll(chosen)) + 1;
      row.value[i] = draws.Below(kOne + 1);
    }
    static const double low = std::log(kRealFeatures + 1.0), high = std::log(kFeatures + 1.0);
    for (std::uint32_t& feature : row.binary)
      feature = std::clamp(static_cast<std::uint32_t>(std::exp(low + (high - low) * draws.Uniform())),
                           kRealFeatures + 1, kFeatures);
    std::sort(row.binary.begin(), row.binary.end());
    row.binaries = static_cast<std::size_t>(std::unique(row.binary.begin(), row.binary.end()) - row.binary.begin());
    return row;
  }

  // The hidden model. A weight is computed when it is wanted, one block of the cipher each, so that no table is needed.
  double Score(const Row& row) const {
    double score = 0;
    for (std::size_t i = 0; i < kReals; ++i)
      score += 2.0 * Draws(weights_key_, row.real[i]).NearNormal() * row.value[i] / kOne;
    for (std::size_t i = 0; i < row.binaries; ++i) score += 0.6 * Draws(weights_key_, row.binary[i]).NearNormal();
    return score;
  }

  const std::uint64_t rows_key_, weights_key_;
  double threshold_;
};

class Ratings final : public RowMaker {
 public:
  explicit Ratings(const GenerateOptions& options)
      : rows_key_(KeyOf(options.seed, "ratings")),
        users_key_(KeyOf(options.seed, "ratings user")),
        items_key_(KeyOf(options.seed, "ratings item")),
        users_(options.users),
        items_(options.items) {}

  std::size_t longest_row_bytes() const override { return 3 * 20 + 1 + 3 * 2 + 1; }

  char* PutRow(std::uint64_t n, char* at) const override {
    Draws draws(rows_key_, n);
    const std::uint64_t user = LongTailed(draws.Uniform(), users_), item = LongTailed(draws.Uniform(), items_);
    const double taste = Taste(user, item) + kNoise * draws.NearNormal();
    at = Put(PutWhole(at, user), "::");
    at = Put(PutWhole(at, item), "::");
    at = PutWhole(at, static_cast<std::uint64_t>(std::clamp(std::round(taste), 1.0, 5.0)));
    at = PutWhole(Put(at, "::"), kFirstTime + kSecondsApart * n + draws.Below(kSecondsApart));
    *at++ = '\n';
    return at;
  }

 private:
  static constexpr double kMean = 3.5, kBias = 0.4, kNoise = 0.7;
  static constexpr int kFactors = 8;
  static constexpr double kFactor = 0.42;                   // the eight together then have an sd of 0.5
  static constexpr std::uint64_t kFirstTime = 956'703'932;  // April 2000
  static constexpr std::uint32_t kSecondsApart = 7;

  // 1 … count, where number k is drawn in proportion to 1 / (k + count / 50): the first gets a third of a percent of
  // some thousands, as in MovieLens.
  static std::uint64_t LongTailed(double uniform, std::uint64_t count) {
    constexpr double kTail = 50;
    const double drawn = static_cast<double>(count) / kTail * (std::pow(1 + kTail, uniform) - 1);
    return std::min(static_cast<std::uint64_t>(drawn) + 1, count);
  }

  double Taste(std::uint64_t user, std::uint64_t item) const {
    Draws of_user(users_key_, user), of_item(items_key_, item);
    double taste = kMean + kBias * (of_user.NearNormal() + of_item.NearNormal());
    for (int k = 0; k < kFactors; ++k) taste += kFactor * of_user.NearNormal() * kFactor * of_item.NearNormal();
    return taste;
  }

  const std::uint64_t rows_key_, users_key_, items_key_;
  const std::uint64_t users_, items_;
};

class Sentences final : public RowMaker {
 public:
  explicit Sentences(const GenerateOptions& options) : key_(KeyOf(options.seed, "grammar")) {}

  std::size_t longest_row_bytes() const override { return kLongest; }

  // A sentence that goes on for ever has to be closed at some time. At a thousand symbols the chance of that is so far
  // below that of a broken machine (less than 1e-20) that the entropy does not change in any digit.
  char* PutRow(std::uint64_t n, char* at) const override {
    Draws draws(key_, n);
    std::uint32_t state = 0;
    const char* const end = at + kLongest - kClosing;
    do {
      const Grammar::Choice& choice = at < end ? Draw(draws, state) : grammar_.ChoicesAt(state).back();
      *at++ = choice.symbol;
      state = choice.next;
    } while (at[-1] != '\n');
    return at;
  }

 private:
  static constexpr std::size_t kLongest = 1000, kClosing = 8;

  const Grammar::Choice& Draw(Draws& draws, std::uint32_t state) const {
    const auto choices = grammar_.ChoicesAt(state);
    double left = draws.Uniform();
    for (const Grammar::Choice& choice : choices)
      if ((left -= choice.probability) < 0) return choice;
    return choices.back();
  }

  const std::uint64_t key_;
  const Grammar grammar_;
};

// The most that is kept of an option: bounds the memory of a row, and keeps draws of 32 bits fine enough.
constexpr std::uint64_t kMostFeatures = 1'000'000, kMostNames = 100'000'000;

Result<std::unique_ptr<RowMaker>> MakeHyperplane(const GenerateOptions& options) {
  if (options.features < 2 || options.features > kMostFeatures)
    return Error{Code::kInvalid, Str(options.features, " features, expected 2 to ", kMostFeatures)};
  return std::unique_ptr<RowMaker>(std::make_unique<Hyperplane>(options));
}

Result<std::unique_ptr<RowMaker>> MakeRatings(const GenerateOptions& options) {
  if (options.users < 1 || options.users > kMostNames || options.items < 1 || options.items > kMostNames)
    return Error{Code::kInvalid,
                 Str(options.users, " users and ", options.items, " items, expected 1 to ", kMostNames, " of each")};
  return std::unique_ptr<RowMaker>(std::make_unique<Ratings>(options));
}

template <class Kind>
Result<std::unique_ptr<RowMaker>> MakePlain(const GenerateOptions& options) {
  return std::unique_ptr<RowMaker>(std::make_unique<Kind>(options));
}

// One line for each kind of data.
struct Generator {
  std::string_view kind;
  Result<std::unique_ptr<RowMaker>> (*make)(const GenerateOptions& options);
};
constexpr std::array kGenerators = {
    Generator{"sea", MakePlain<Sea>},           Generator{"hyperplane", MakeHyperplane},
    Generator{"url-like", MakePlain<UrlLike>},  Generator{"ratings", MakeRatings},
    Generator{"grammar", MakePlain<Sentences>},
};

Result<std::unique_ptr<RowMaker>> MakeRowMaker(const GenerateOptions& options) {
  for (const Generator& generator : kGenerators)
    if (generator.kind == options.kind) return generator.make(options);
  return Error{Code::kInvalid,
               Str("kind ", Quoted(options.kind), " is unknown; expected ", Join(GeneratorKinds(), ", "))};
}

}  // namespace

std::vector<std::string> GeneratorKinds() {
  std::vector<std::string> kinds;
  for (const Generator& generator : kGenerators) kinds.emplace_back(generator.kind);
  return kinds;
}

Result<void> Generate(const GenerateOptions& options, base::OutputFile& out) {
  constexpr std::size_t kPieceBytes = 1 << 20;
  const auto maker = TRY(MakeRowMaker(options));
  const std::string header = maker->Header();
  Buffer<char> piece;
  piece.Append(header);
  for (std::uint64_t i = 0; i < options.rows; ++i) {
    char* const at = piece.Room(maker->longest_row_bytes());
    piece.SetEnd(maker->PutRow(options.first_row + i, at));
    if (piece.size() < kPieceBytes) continue;
    TRY(out.Write(std::string_view(piece.data(), piece.size())));
    piece.Clear();
  }
  if (piece.empty()) return {};
  return out.Write(std::string_view(piece.data(), piece.size()));
}

}  // namespace freshet::data
