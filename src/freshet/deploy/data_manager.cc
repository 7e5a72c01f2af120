#include "deploy/data_manager.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace freshet::deploy {
namespace {

void Shuffle(std::vector<std::uint64_t>& numbers, base::Random& random) {
  for (std::size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[random.Below(i)]);
}

}  // namespace

Result<std::unique_ptr<DataManager>> DataManager::Make(const DataOptions& options, RecordLog& log) {
  if (options.remembered_ids == 0 || options.pending_bytes == 0)
    return Error{Code::kInvalid, "0 ids or bytes of predictions to remember: expected 1 or more"};
  if (options.feedback_ttl < 0)
    return Error{Code::kInvalid, Str(options.feedback_ttl, " seconds to wait for a label: expected 0 or more")};
  TRY(options.sampler.Validate());
  TRY(options.rate.Validate());
  auto sampler = TRY(Sampler::Make(options.sampler, options.seed));
  return std::unique_ptr<DataManager>(new DataManager(options, log, std::move(sampler)));
}

void DataManager::Join(std::uint64_t first, std::uint64_t rows, bool known) {
  SkipTo(first);
  sets_.Add(end_, rows, known);
  for (; rows > 0; --rows) Observe(1);
}

// Where the pace is that of arrivals, one that they did not call for would be empty: it draws as many rows as a full
// buffer calls for, and at least a twentieth of the history, so that a pass over that is few records.
Take DataManager::Plan(std::uint64_t seed, std::uint64_t first, Pace pace) const {
  constexpr std::uint64_t kIterationsAPass = 20;
  Take take{seed, first, rate_.value(), options_.per_arrival, options_.buffer_share, options_.most_sample};
  if (pace == Pace::kQuiet && options_.per_arrival > 0)
    take.least_sample =
        std::max({std::uint64_t{1}, (end_ - std::min(end_, first)) / kIterationsAPass,
                  static_cast<std::uint64_t>(options_.per_arrival * static_cast<double>(options_.quiet_rows))});
  return take;
}

std::vector<std::uint64_t> DataManager::TakeIteration(const Take& take) {
  base::Random random(take.seed, "iteration");
  const auto arrivals = static_cast<double>(take.sets ? buffered() : end_ - buffer_begin_);
  if (take.least_sample > 0 && take.buffer_share == 0) buffer_begin_ = end_;
  const std::uint64_t begin = std::max(take.first, forgotten_);
  const std::uint64_t old_sets = take.sets ? sets_.RowsBetween(take.first, std::min(begin, buffer_begin_)) : 0;
  const auto kept = static_cast<double>(buffer_begin_ - std::min(buffer_begin_, take.first));
  const auto trusted = static_cast<double>(buffer_begin_ - std::min(buffer_begin_, begin) + old_sets);
  const double share = kept > 0 ? trusted / kept : 0;
  auto count = static_cast<std::uint64_t>(std::llround(std::max(
      take.rate * trusted + take.per_arrival * arrivals * share, static_cast<double>(take.least_sample) * share)));
  if (take.most_sample > 0) count = std::min(count, take.most_sample);
  std::uint64_t of_sets = 0;
  if (old_sets > 0)
    of_sets = static_cast<std::uint64_t>(
        std::llround(static_cast<double>(count) * (static_cast<double>(old_sets) / trusted)));
  std::vector<std::uint64_t> numbers;
  sampler_->Forget(begin);
  sampler_->Draw(buffer_begin_, count - of_sets, random, numbers);
  if (of_sets > 0) sets_.Draw(take.first, std::min(begin, buffer_begin_), of_sets, random, numbers);
  if (take.sets) std::erase_if(numbers, [&](std::uint64_t number) { return sets_.IsUnvisited(number); });
  for (std::uint64_t number = buffer_begin_; number < end_; ++number) {
    if (take.sets && sets_.Holds(number)) continue;
    if (take.buffer_share >= 1 || random.Uniform() < take.buffer_share) numbers.push_back(number);
  }
  Shuffle(numbers, random);
  buffer_begin_ = end_;
  return numbers;
}

std::vector<std::uint64_t> DataManager::TakeUnvisited(const Take& take) const {
  base::Random random(take.seed, "data sets");
  std::vector<std::uint64_t> numbers = sets_.Unvisited(take.first);
  Shuffle(numbers, random);
  return numbers;
}

std::vector<std::uint64_t> DataManager::TakeEverything(std::uint64_t seed, std::uint64_t first) {
  base::Random random(seed, "retraining");
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t number = first; number < end_; ++number) numbers.push_back(number);
  Shuffle(numbers, random);
  buffer_begin_ = end_;
  return numbers;
}

std::string DataManager::Save() const {
  nlohmann::ordered_json json;
  json["buffer_begin"] = buffer_begin_;
  json["end"] = end_;
  json["forgotten"] = forgotten_;
  json["sets"] = sets_.Save();
  json["sampler"] = sampler_->Save();
  json["rate"] = rate_.Save();
  return json.dump();
}

Result<void> DataManager::Load(const std::string& text) {
  try {
    const auto json = nlohmann::ordered_json::parse(text);
    buffer_begin_ = json.at("buffer_begin");
    end_ = json.at("end");
    forgotten_ = json.at("forgotten");
    if (json.contains("sets") && !sets_.Load(json.at("sets")))
      return Error{Code::kCorrupt, "what is known of the data sets is damaged"};
    const auto sampler = json.at("sampler").get<std::vector<std::uint64_t>>();
    const auto rate = json.at("rate").get<std::vector<double>>();
    // With other options than before they start anew.
    if (!sampler_->Load(sampler)) sampler_ = TRY(Sampler::Make(options_.sampler, options_.seed));
    if (!rate_.Load(rate)) rate_ = SamplingRate(options_.rate);
  } catch (const nlohmann::ordered_json::exception& problem) {
    return Error{Code::kCorrupt, Str("what is known of the data is damaged: ", problem.what())};
  }
  return {};
}

}  // namespace freshet::deploy
