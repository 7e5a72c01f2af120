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

std::vector<std::uint64_t> DataManager::TakeIteration(const Take& take) {
  base::Random random(take.seed, "iteration");
  const std::uint64_t begin = std::max(take.first, forgotten_);
  const auto kept = static_cast<double>(buffer_begin_ - std::min(buffer_begin_, take.first));
  const auto trusted = static_cast<double>(buffer_begin_ - std::min(buffer_begin_, begin));
  const double extra = take.per_arrival * static_cast<double>(buffered()) * (kept > 0 ? trusted / kept : 0);
  auto count = static_cast<std::uint64_t>(std::llround(take.rate * trusted + extra));
  if (take.most_sample > 0) count = std::min(count, take.most_sample);
  std::vector<std::uint64_t> numbers;
  sampler_->Forget(begin);
  sampler_->Draw(buffer_begin_, count, random, numbers);
  for (std::uint64_t number = buffer_begin_; number < end_; ++number)
    if (take.buffer_share >= 1 || random.Uniform() < take.buffer_share) numbers.push_back(number);
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
  json["forgotten"] = forgotten_;
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
