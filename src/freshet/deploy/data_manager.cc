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

void Pending::Add(std::uint64_t id_hash, std::int64_t time, std::string packed) {
  Expire(time);
  if (rows_.size() >= most_ && !order_.empty()) {
    rows_.erase(order_.front().second);
    order_.pop_front();
  }
  rows_[id_hash] = {time, std::move(packed)};
  order_.emplace_back(time, id_hash);
}

std::optional<std::string> Pending::Take(std::uint64_t id_hash, std::int64_t now) {
  Expire(now);
  const auto found = rows_.find(id_hash);
  if (found == rows_.end()) return std::nullopt;
  std::string packed = std::move(found->second.packed);
  rows_.erase(found);
  return packed;
}

void Pending::Expire(std::int64_t now) {
  while (!order_.empty() && order_.front().first + ttl_ < now) {
    const auto found = rows_.find(order_.front().second);
    if (found != rows_.end() && found->second.time + ttl_ < now) rows_.erase(found);
    order_.pop_front();
  }
}

Result<std::unique_ptr<DataManager>> DataManager::Make(const DataOptions& options, RecordLog& log) {
  TRY(options.sampler.Validate());
  TRY(options.rate.Validate());
  auto sampler = TRY(Sampler::Make(options.sampler, options.seed));
  return std::unique_ptr<DataManager>(new DataManager(options, log, std::move(sampler)));
}

std::vector<std::uint64_t> DataManager::TakeIteration(std::uint64_t seed, std::uint64_t first) {
  base::Random random(seed, "iteration");
  const std::uint64_t older = buffer_begin_ - std::min(buffer_begin_, first);
  auto count = static_cast<std::uint64_t>(std::llround(rate_.value() * static_cast<double>(older)));
  if (options_.most_sample > 0) count = std::min(count, options_.most_sample);
  std::vector<std::uint64_t> numbers;
  sampler_->Draw(buffer_begin_, count, random, numbers);
  std::erase_if(numbers, [&](std::uint64_t number) { return number < first; });
  for (std::uint64_t number = buffer_begin_; number < end_; ++number)
    if (options_.buffer_share >= 1 || random.Uniform() < options_.buffer_share) numbers.push_back(number);
  Shuffle(numbers, random);
  buffer_begin_ = end_;
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
  json["sampler"] = sampler_->Save();
  json["rate"] = rate_.Save();
  return json.dump();
}

Result<void> DataManager::Load(const std::string& text) {
  try {
    const auto json = nlohmann::ordered_json::parse(text);
    buffer_begin_ = json.at("buffer_begin");
    end_ = json.at("end");
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
