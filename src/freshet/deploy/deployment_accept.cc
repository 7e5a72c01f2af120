// What comes in: requests to learn, labels for what was predicted, predictions to be remembered. The writer checks each
// and takes its rows into the log.

#include <algorithm>
#include <set>

#include "deploy/deployment.h"

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

void Deployment::PostLearn(data::Rows rows, std::vector<data::NewName> names, std::vector<std::string> ids,
                           LearnDone done, std::vector<data::NewLabel> new_labels) {
  Request request;
  request.rows = std::move(rows);
  request.names = std::move(names);
  request.ids = std::move(ids);
  request.new_labels = std::move(new_labels);
  request.done = std::move(done);
  inbox_.Post(std::move(request));
}

void Deployment::PostFeedback(std::string id, std::vector<float> labels, LearnDone done,
                              std::optional<std::string> owner, std::vector<data::NewLabel> new_labels) {
  Request request;
  request.new_labels = std::move(new_labels);
  request.kind = Request::Kind::kFeedback;
  request.id = std::move(id);
  request.labels = std::move(labels);
  request.owner = std::move(owner);
  request.done = std::move(done);
  inbox_.Post(std::move(request));
}

void Deployment::PostPrediction(std::string id, data::Rows rows, std::vector<data::NewName> names,
                                std::vector<float> scores, std::string owner) {
  Request request;
  request.kind = Request::Kind::kPrediction;
  request.id = std::move(id);
  request.rows = std::move(rows);
  request.names = std::move(names);
  request.scores = std::move(scores);
  request.owner = std::move(owner);
  inbox_.Post(std::move(request));
}

// Writes one row into the waiting part of the log and, if it is to be learned, among the fresh ones.
void Deployment::AcceptRow(Request& request, std::size_t row) {
  const bool prediction = request.kind == Request::Kind::kPrediction;
  Slip slip;
  if (prediction) {
    slip.id = RowId(request.id, row, request.rows.size());
    slip.owner = *request.owner;
  } else if (!request.ids.empty()) {
    slip.id = request.ids[row];
  }
  const std::uint64_t hash = prediction || slip.id.empty() ? 0 : IdWindow::HashOf(slip.id);
  if (hash != 0) {
    if (data_->ids().Has(hash) || WasLabelled(slip.id)) {
      ++request.reply.duplicates;
      return;
    }
    data_->ids().Add(hash);
    ++request.ids_added;
  }
  slip.time = request.rows.times.empty() || prediction ? Now() : request.rows.times[row];
  if (prediction) {
    const std::size_t k = request.scores.size() / request.rows.size();  // of the model that made them
    slip.scores.assign(request.scores.begin() + static_cast<std::ptrdiff_t>(row * k),
                       request.scores.begin() + static_cast<std::ptrdiff_t>((row + 1) * k));
  }
  if (!request.names.empty()) {
    const std::uint32_t begin = request.rows.offsets[row], end = request.rows.offsets[row + 1];
    auto name = std::lower_bound(request.names.begin(), request.names.end(), begin,
                                 [](const data::NewName& n, std::uint32_t entry) { return n.entry < entry; });
    for (; name != request.names.end() && name->entry < end; ++name) {
      if (!prediction) data::AddNames({&*name, 1}, models_->description(), request.rows);
      slip.names.push_back({name->entry - begin, name->space, name->name});
    }
  }
  payload_.clear();
  PackRow(request.rows.batch(), row, slip, payload_);
  if (prediction) {
    if (pending_log_ != nullptr) pending_log_->Append(RecordKind::kPrediction, payload_, 0, slip.time);
    data_->pending().Add(std::move(slip.owner), std::move(slip.id), slip.time, payload_);
    return;
  }
  request.reply.last_sequence = log_->Append(RecordKind::kObservation, payload_, hash, slip.time);
  ++request.reply.accepted;
  fresh_.Add(payload_, request.reply.last_sequence);
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
Result<std::string> Deployment::OwnerOf(const Request& feedback) const {
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
void Deployment::AcceptFeedback(Request& request) {
  auto owner = OwnerOf(request);
  if (!owner.ok()) {
    request.error = owner.error();
    return;
  }
  request.owner = std::move(owner).value();
  const std::size_t count = request.labels.size();
  request.rows.width = model_->config().dense ? model_->config().features : 0;
  request.rows.ClearRows();
  const auto answer = [&](std::uint64_t duplicates, std::uint64_t expired) {
    request.reply.duplicates += duplicates;
    request.reply.expired += expired;
  };
  for (std::size_t r = 0; r < count; ++r) {
    const std::string id = RowId(request.id, r, count);
    const std::uint64_t hash = IdWindow::HashOf(*request.owner, id);
    if (data_->ids().Has(hash) || data_->ids().Has(IdWindow::HashOf(id))) {
      answer(1, 0);
      continue;
    }
    const std::string* const packed = data_->pending().Find(*request.owner, id, Now());
    if (packed == nullptr) {
      answer(0, 1);
      continue;
    }
    data::Rows one;
    one.width = request.rows.width;
    one.ClearRows();
    Slip slip;
    if (!UnpackRow(*packed, one, slip).ok()) {
      answer(0, 1);
      continue;
    }
    one.labels[0] = request.labels[r];
    data::AddNames(slip.names, models_->description(), one);
    slip.time = Now();
    payload_.clear();
    PackRow(one.batch(), 0, slip, payload_);
    data_->ids().Add(hash);
    ++request.ids_added;
    request.answered.push_back(id);
    request.reply.last_sequence = log_->Append(RecordKind::kObservation, payload_, hash, slip.time);
    ++request.reply.accepted;
    fresh_.Add(payload_, request.reply.last_sequence);
  }
}

void Deployment::Accept(Request& request) {
  if (request.error) return;
  if (request.kind == Request::Kind::kFeedback) return AcceptFeedback(request);
  auto fits = CheckIndices(*model_, request.rows.batch());
  if (fits.ok()) fits = CheckSizes(request.rows.batch(), request.names, request.ids);
  if (!fits.ok()) {
    request.error = fits.error();
    return;
  }
  for (std::size_t r = 0; r < request.rows.size(); ++r) AcceptRow(request, r);
}

// The log could not take it: as if it had never come.
void Deployment::TakeBack(Request& request) {
  for (; request.ids_added > 0; --request.ids_added) data_->ids().RemoveNewest();
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
