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
  while (!order_.empty()) {
    const bool gone = IsGone(order_.front());
    if (!gone && order_.front().first + ttl_ >= time && rows_.size() < most_) break;
    if (!gone) rows_.erase(order_.front().second);
    order_.pop_front();
  }
  rows_[id_hash] = {time, std::move(packed)};
  order_.emplace_back(time, id_hash);
}

bool Pending::IsGone(const std::pair<std::int64_t, std::uint64_t>& place) const {
  const auto found = rows_.find(place.second);
  return found == rows_.end() || found->second.time != place.first;
}

const std::string* Pending::Find(std::uint64_t id_hash, std::int64_t now) const {
  const auto found = rows_.find(id_hash);
  return found == rows_.end() || found->second.time + ttl_ < now ? nullptr : &found->second.packed;
}

Result<std::unique_ptr<DataManager>> DataManager::Make(const DataOptions& options, RecordLog& log) {
  if (options.remembered_ids == 0 || options.most_pending == 0)
    return Error{Code::kInvalid, "0 ids or predictions to remember: expected 1 or more"};
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
