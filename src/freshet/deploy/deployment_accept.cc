// What comes in: requests to learn, labels for what was predicted, predictions to be remembered. The writer checks each
// and takes its rows into the log.

#include <algorithm>
#include <set>

#include "deploy/deployment_parts.h"

namespace freshet::deploy {
namespace {

// Indices that the model could not make room for are refused before they are written.
Result<void> CheckIndices(const model::Model& model, const data::Batch& batch) {
  if (!batch.sparse()) return {};
  std::uint64_t most = model.config().features;
  for (const optimize::Block& block : model.Blocks())
    if (block.most_rows > block.rows) most = block.most_rows;
  const std::uint64_t end = model::IndexEnd(batch);
  if (end <= most) return {};
  return Error{Code::kBadInput, Str("feature ", end - 1, " is beyond what the model can have (", most, " features)")};
}

// So are rows that a record has no room for.
Result<void> CheckSizes(const data::Batch& batch, std::span<const data::NewName> names,
                        std::span<const std::string> ids) {
  std::uint64_t texts = 0;
  for (const data::NewName& name : names) texts += name.name.size() + 3 * sizeof(std::uint32_t);
  for (std::size_t r = 0; r < batch.rows; ++r) {
    const std::uint64_t entries = batch.sparse() ? batch.offsets[r + 1] - batch.offsets[r] : batch.width;
    const std::uint64_t id = ids.empty() ? 0 : ids[r].size();
    if (entries * 2 * sizeof(float) + texts + id > kMostPayload / 2)
      return Error{Code::kBadInput, Str("row ", r, ": ", entries, " features are more than a record has room for")};
  }
  return {};
}

// The row of one id when a request had several under one.
std::string RowId(const std::string& id, std::size_t row, std::size_t rows) {
  return rows == 1 ? id : Str(id, "/", row);
}

}  // namespace

void Deployment::PostRequest(Learn learn) {
  {
    const base::Lock lock(inbox_mutex_);
    learns_.push_back(std::move(learn));
    ++learns_posted_;
  }
  doors_.writer->Ring();
}

void Deployment::PostLearn(data::Rows rows, std::vector<data::NewName> names, std::vector<std::string> ids,
                           LearnDone done, std::vector<data::NewLabel> new_labels) {
  const std::size_t count = rows.size();
  if (waiting_rows_.load(std::memory_order_relaxed) + count > options_.most_waiting + 1) {
    done(Error{Code::kBusy, "too many observations are waiting to be written; send them again in a moment"});
    return;
  }
  waiting_rows_ += count;
  Learn learn;
  learn.rows = std::move(rows);
  learn.names = std::move(names);
  learn.ids = std::move(ids);
  learn.new_labels = std::move(new_labels);
  learn.done = std::move(done);
  PostRequest(std::move(learn));
}

void Deployment::PostFeedback(std::string id, std::vector<float> labels, LearnDone done,
                              std::optional<std::string> owner, std::vector<data::NewLabel> new_labels) {
  Learn learn;
  learn.new_labels = std::move(new_labels);
  learn.kind = Learn::Kind::kFeedback;
  learn.id = std::move(id);
  learn.labels = std::move(labels);
  learn.owner = std::move(owner);
  learn.done = std::move(done);
  PostRequest(std::move(learn));
}

void Deployment::PostPrediction(std::string id, data::Rows rows, std::vector<data::NewName> names,
                                std::vector<float> scores, std::string owner) {
  const std::size_t count = rows.size();
  if (waiting_rows_.load(std::memory_order_relaxed) + count > options_.most_waiting + 1)
    return;  // feedback will miss it
  waiting_rows_ += count;
  Learn learn;
  learn.kind = Learn::Kind::kPrediction;
  learn.id = std::move(id);
  learn.rows = std::move(rows);
  learn.names = std::move(names);
  learn.scores = std::move(scores);
  learn.owner = std::move(owner);
  PostRequest(std::move(learn));
}

// Writes one row into the waiting part of the log and, if it is to be learned, among the fresh ones.
void Deployment::AcceptRow(Learn& learn, std::size_t row) {
  const bool prediction = learn.kind == Learn::Kind::kPrediction;
  Slip slip;
  if (prediction) {
    slip.id = RowId(learn.id, row, learn.rows.size());
    slip.owner = *learn.owner;
  } else if (!learn.ids.empty()) {
    slip.id = learn.ids[row];
  }
  const std::uint64_t hash = prediction || slip.id.empty() ? 0 : IdWindow::HashOf(slip.id);
  if (hash != 0) {
    if (data_->ids().Has(hash) || WasLabelled(slip.id)) {
      ++learn.reply.duplicates;
      return;
    }
    data_->ids().Add(hash);
    ++learn.ids_added;
  }
  slip.time = learn.rows.times.empty() || prediction ? Now() : learn.rows.times[row];
  if (prediction) {
    const std::size_t k = learn.scores.size() / learn.rows.size();  // of the model that made them
    slip.scores.assign(learn.scores.begin() + static_cast<std::ptrdiff_t>(row * k),
                       learn.scores.begin() + static_cast<std::ptrdiff_t>((row + 1) * k));
  }
  if (!learn.names.empty()) {
    const std::uint32_t begin = learn.rows.offsets[row], end = learn.rows.offsets[row + 1];
    auto name = std::lower_bound(learn.names.begin(), learn.names.end(), begin,
                                 [](const data::NewName& n, std::uint32_t entry) { return n.entry < entry; });
    for (; name != learn.names.end() && name->entry < end; ++name) {
      if (!prediction) data::AddNames({&*name, 1}, models_->description(), learn.rows);
      slip.names.push_back({name->entry - begin, name->space, name->name});
    }
  }
  payload_.clear();
  PackRow(learn.rows.batch(), row, slip, payload_);
  if (prediction) {
    if (pending_log_ != nullptr) pending_log_->Append(RecordKind::kPrediction, payload_, 0, slip.time);
    data_->pending().Add(std::move(slip.owner), std::move(slip.id), slip.time, payload_);
    return;
  }
  learn.reply.last_sequence = log_->Append(RecordKind::kObservation, payload_, hash, slip.time);
  ++learn.reply.accepted;
  CHECK(UnpackRow(payload_, fresh_, fresh_slips_.emplace_back()).ok());
  fresh_sequences_.push_back(learn.reply.last_sequence);
}

// Names in the dictionaries that no record holds yet, since the one that brought them could not be written, come before
// whatever is written next: it may use their numbers.
void Deployment::AppendUnloggedNames() {
  std::vector<data::NewName> names;
  for (std::size_t d = 0; d < logged_names_.size(); ++d) {
    const data::Dictionary& dictionary = models_->description().dictionaries[d];
    for (std::uint32_t n = logged_names_[d]; n < dictionary.size(); ++n)
      names.push_back({n, static_cast<std::uint32_t>(d), std::string(dictionary.Name(n))});
  }
  if (names.empty()) return;
  std::string payload;
  PackNames(names, payload);
  log_->Append(RecordKind::kNames, payload);
}

void Deployment::NamesAreLogged() {
  logged_names_.clear();
  for (const auto& dictionary : models_->description().dictionaries) logged_names_.push_back(dictionary.size());
}

// Whether what some owner predicted under this id has got its label, so that the id is not new.
bool Deployment::WasLabelled(const std::string& id) const {
  if (!data_->pending().owned()) return false;
  const auto owners = data_->pending().OwnersOf(id, Now());
  return std::any_of(owners.begin(), owners.end(),
                     [&](const std::string& owner) { return data_->ids().Has(IdWindow::HashOf(owner, id)); });
}

// Whose rows a feedback is about.
Result<std::string> Deployment::OwnerOf(const Learn& feedback) const {
  if (feedback.owner) return *feedback.owner;
  std::set<std::string> owners;
  for (std::size_t r = 0; r < feedback.labels.size(); ++r)
    for (std::string& owner : data_->pending().OwnersOf(RowId(feedback.id, r, feedback.labels.size()), Now()))
      owners.insert(std::move(owner));
  if (owners.size() < 2) return owners.empty() ? std::string() : *owners.begin();
  return Error{Code::kInvalid, Str("id ", Quoted(feedback.id),
                                   " was predicted for several: ", Join({owners.begin(), owners.end()}, ", "),
                                   "; say whose it is: \"owner\": ", Quoted(*owners.rbegin()))};
}

// Turns the labels of a feedback into observations of the rows that were predicted.
void Deployment::AcceptFeedback(Learn& learn) {
  auto owner = OwnerOf(learn);
  if (!owner.ok()) {
    learn.error = owner.error();
    return;
  }
  learn.owner = std::move(owner).value();
  const std::size_t count = learn.labels.size();
  learn.rows.width = model_->config().dense ? model_->config().features : 0;
  learn.rows.ClearRows();
  const auto answer = [&](std::uint64_t duplicates, std::uint64_t expired) {
    learn.reply.duplicates += duplicates;
    learn.reply.expired += expired;
  };
  for (std::size_t r = 0; r < count; ++r) {
    const std::string id = RowId(learn.id, r, count);
    const std::uint64_t hash = IdWindow::HashOf(*learn.owner, id);
    if (data_->ids().Has(hash) || data_->ids().Has(IdWindow::HashOf(id))) {
      answer(1, 0);
      continue;
    }
    const std::string* const packed = data_->pending().Find(*learn.owner, id, Now());
    if (packed == nullptr) {
      answer(0, 1);
      continue;
    }
    data::Rows one;
    one.width = learn.rows.width;
    one.ClearRows();
    Slip slip;
    if (!UnpackRow(*packed, one, slip).ok()) {
      answer(0, 1);
      continue;
    }
    one.labels[0] = learn.labels[r];
    data::AddNames(slip.names, models_->description(), one);
    slip.time = Now();
    payload_.clear();
    PackRow(one.batch(), 0, slip, payload_);
    data_->ids().Add(hash);
    ++learn.ids_added;
    learn.answered.push_back(id);
    learn.reply.last_sequence = log_->Append(RecordKind::kObservation, payload_, hash, slip.time);
    ++learn.reply.accepted;
    CHECK(UnpackRow(payload_, fresh_, fresh_slips_.emplace_back()).ok());
    fresh_sequences_.push_back(learn.reply.last_sequence);
  }
}

void Deployment::Accept(Learn& learn) {
  if (learn.error) return;
  if (learn.kind == Learn::Kind::kFeedback) return AcceptFeedback(learn);
  auto fits = CheckIndices(*model_, learn.rows.batch());
  if (fits.ok()) fits = CheckSizes(learn.rows.batch(), learn.names, learn.ids);
  if (!fits.ok()) {
    learn.error = fits.error();
    return;
  }
  for (std::size_t r = 0; r < learn.rows.size(); ++r) AcceptRow(learn, r);
}

// The log could not take it: as if it had never come.
void Deployment::TakeBack(Learn& learn) {
  for (; learn.ids_added > 0; --learn.ids_added) data_->ids().RemoveNewest();
}

// A prediction that cannot be written waits in memory alone: a restart forgets it.
void Deployment::KeepPredictions() {
  if (pending_log_ == nullptr || pending_log_->next_sequence() == pending_log_->end_sequence()) return;
  auto kept = pending_log_->Commit();
  if (kept.ok()) {
    if (auto dropped = pending_log_->Retain(pending_log_->next_sequence(), Now()); !dropped.ok())
      kept = dropped.error();
  }
  if (!kept.ok()) Problem(kept.error());
}

}  // namespace freshet::deploy
