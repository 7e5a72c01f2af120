#include "strategy/ring/handed_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "fabric/collectives/transfers.h"

namespace freshet::strategy::ring {
namespace {

constexpr std::size_t kHeadWords = 8;
static_assert(sizeof(float) == sizeof(std::uint32_t));

template <class T>
void AddWords(const T* values, std::size_t count, std::vector<std::uint32_t>& to) {
  const std::size_t before = to.size();
  to.resize(before + count);
  if (count > 0) std::memcpy(to.data() + before, values, count * sizeof(T));
}

void AddFloats(std::span<const std::uint32_t> words, data::Buffer<float>& to) {
  if (words.empty()) return;
  float* const room = to.Room(words.size());
  std::memcpy(room, words.data(), words.size_bytes());
  to.SetEnd(room + words.size());
}

}  // namespace

HandedRows::HandedRows(fabric::Collectives& collectives, const model::Model& model)
    : collectives_(collectives),
      me_(collectives.fabric().rank()),
      members_(collectives.fabric().size()),
      spread_(model, members_),
      width_(model.config().dense ? model.config().features : 0),
      given_(static_cast<std::size_t>(members_)),
      clock_(collectives.fabric().clock()) {
  const std::size_t blocks = model.Blocks().size();
  for (std::size_t b = 0; b < blocks; ++b)
    if (model.partials()->cut(b) == model::Partials::Cut::kNumbers) numbers_ = b;
}

std::size_t HandedRows::HeadBytes() {
  static_assert(sizeof(Head) == kHeadWords * sizeof(std::uint32_t));
  return sizeof(Head);
}

std::size_t HandedRows::ColumnsFrom(int member, int end) const {
  std::size_t columns = 0;
  do {
    columns += spread_.ColumnsOf(*numbers_, member).size();
    member = (member + 1) % members_;
  } while (member != end);
  return columns;
}

Result<HandedRows::Met> HandedRows::Meet(const Step& step, const data::Batch& mine) {
  clock_.Begin();
  bytes_sent_ = 0;
  Words own = Write(step, mine);
  TRY(Take(me_, own));
  TRY(Pass(step, std::move(own)));
  return PutTogether();
}

HandedRows::Words HandedRows::Write(const Step& step, const data::Batch& mine) const {
  Head head{.progress = step.progress,
            .step = static_cast<std::uint32_t>(step.number),
            .rows = static_cast<std::uint32_t>(mine.rows),
            .width = static_cast<std::uint32_t>(mine.rows > 0 && !mine.sparse() ? mine.width : 0),
            .stop = step.mine.stop,
            .save = step.mine.save,
            .admit = step.mine.admit,
            .weighted = mine.weights != nullptr};
  Words letter(kHeadWords);
  AddWords(mine.labels, mine.rows, letter);
  if (mine.weights != nullptr) AddWords(mine.weights, mine.rows, letter);
  if (width_ == 0) {
    const std::size_t ends = letter.size();
    letter.resize(ends + mine.rows);
    letter.reserve(letter.size() + 2 * mine.entries());
    std::uint32_t end = 0;
    for (std::size_t r = 0; r < mine.rows; ++r) {
      for (std::uint32_t e = mine.offsets[r]; e < mine.offsets[r + 1]; ++e) {
        if (mine.indices[e] == data::kUnseen) continue;
        head.features = std::max(head.features, mine.indices[e] + 1);
        letter.push_back(mine.indices[e]);
        letter.push_back(std::bit_cast<std::uint32_t>(mine.values[e]));
        ++end;
      }
      letter[ends + r] = end;
    }
  } else if (numbers_) {
    for (int k = 0; k < members_; ++k) {  // in the order in which they get it
      const Spread::Range columns = spread_.ColumnsOf(*numbers_, (me_ + k) % members_);
      for (std::size_t r = 0; r < mine.rows; ++r)
        AddWords(mine.dense + r * mine.width + columns.first, columns.size(), letter);
    }
  } else {
    AddWords(mine.dense, mine.rows * head.width, letter);
  }
  std::memcpy(letter.data(), &head, sizeof head);
  return letter;
}

bool HandedRows::HasEntries(const Head& head, const Words& letter, std::size_t begin) const {
  if (letter.size() < begin + head.rows) return false;
  std::uint32_t before = 0;
  for (std::size_t r = 0; r < head.rows; ++r) {
    const std::uint32_t end = letter[begin + r];
    if (end < before) return false;
    before = end;
  }
  return letter.size() == begin + head.rows + 2 * std::size_t{before};
}

Result<void> HandedRows::Take(int from, Words& letter) {
  const Error damaged{Code::kCorrupt, Str("rows of rank ", from, " came damaged to rank ", me_,
                                          "; do all members run the same program?")};
  Given& given = given_[static_cast<std::size_t>(from)];
  const Head& head = given.head;
  if (letter.size() < kHeadWords) return damaged;
  std::memcpy(static_cast<void*>(&given.head), letter.data(), sizeof head);
  const std::size_t rows = head.rows, begin = kHeadWords + rows * (head.weighted ? 2 : 1);
  if (letter.size() < begin || (rows > 0 && head.width != width_)) return damaged;
  given.words.assign(letter.begin() + kHeadWords, letter.begin() + static_cast<std::ptrdiff_t>(begin));
  if (rows > 0 && width_ == 0) {
    if (!HasEntries(head, letter, begin)) return damaged;
    TakeEntries(given, letter, begin);
    return {};
  }
  const std::size_t left = rows * (numbers_ ? ColumnsFrom(me_, from) : width_);
  const std::size_t own = rows * (numbers_ ? spread_.ColumnsOf(*numbers_, me_).size() : width_);
  if (letter.size() != begin + left) return damaged;
  const auto first = letter.begin() + static_cast<std::ptrdiff_t>(begin),
             end = first + static_cast<std::ptrdiff_t>(own);
  given.words.insert(given.words.end(), first, end);
  if (numbers_) letter.erase(first, end);  // else all need them
  return {};
}

void HandedRows::TakeEntries(Given& given, Words& letter, std::size_t begin) {
  if (!spread_.by_features()) {  // all need whole rows
    given.words.insert(given.words.end(), letter.begin() + static_cast<std::ptrdiff_t>(begin), letter.end());
    return;
  }
  const std::size_t rows = given.head.rows, ends = given.words.size();
  given.words.resize(ends + rows);
  const std::size_t entries = begin + rows;
  std::size_t at = entries, left = entries;  // words that were looked at, and that stay
  std::uint32_t own = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    for (const std::size_t end = entries + 2 * std::size_t{letter[begin + r]}; at < end; at += 2) {
      if (spread_.OwnerOfRange(letter[at] / Spread::kRangeRows) == me_) {
        given.words.push_back(letter[at]);
        given.words.push_back(letter[at + 1]);
        ++own;
      } else {
        letter[left++] = letter[at];
        letter[left++] = letter[at + 1];
      }
    }
    given.words[ends + r] = own;
    letter[begin + r] = static_cast<std::uint32_t>((left - entries) / 2);
  }
  letter.resize(left);
}

// A letter that leaves is that of the member before the one whose letter left last.
Result<void> HandedRows::Pass(const Step& step, Words leaving) {
  fabric::Fabric& fabric = collectives_.fabric();
  const int right = (me_ + 1) % members_, left = (me_ + members_ - 1) % members_;
  Words coming;
  fabric::Transfers transfers(fabric, collectives_.NextTag(), "handing rows round the ring");
  for (int hop = 1; hop < members_; ++hop) {
    const int from = (me_ + members_ - hop) % members_;
    Head head;
    std::memcpy(static_cast<void*>(&head), leaving.data(), sizeof head);
    head.sent = clock_.sent();
    std::memcpy(leaving.data(), &head, sizeof head);
    bytes_sent_ += leaving.size() * sizeof leaving[0] - sizeof head;
    const auto sent = TRY(transfers.SendAny(right, std::as_bytes(std::span(leaving))));
    auto begun = fabric.clock().Now();
    const auto lent = TRY(transfers.Borrow(left));
    const fabric::Arrived arrived = TRY(transfers.Wait(lent));
    coming.resize(arrived.view.size() / sizeof coming[0]);
    if (!coming.empty()) std::memcpy(coming.data(), arrived.view.data(), coming.size() * sizeof coming[0]);
    transfers.Release(lent);
    if (coming.size() >= kHeadWords) std::memcpy(static_cast<void*>(&head), coming.data(), sizeof head);
    clock_.Came(begun, head.sent);
    auto taken = Take(from, coming);
    if (taken.ok() && head.step != static_cast<std::uint32_t>(step.number))
      taken = Error{Code::kInvalid, Str("rank ", me_, " is at step ", step.number, ", and rank ", from, " at step ",
                                        head.step, ": all members of a ring go on from the same one")};
    if (!taken.ok()) fabric.Abort(taken.error());  // nobody waits for what is not passed on
    TRY(taken);
    begun = fabric.clock().Now();
    TRY(transfers.Wait(sent));  // from `leaving`
    clock_.Went(begun);
    std::swap(leaving, coming);
  }
  clock_.End();
  return transfers.WaitAll();
}

HandedRows::Met HandedRows::PutTogether() {
  Met met;
  bool weighted = false;
  for (int member = 0; member < members_; ++member) {
    const Head& head = given_[static_cast<std::size_t>(member)].head;
    if (member < me_) met.first += head.rows;
    met.rows.rows += head.rows;
    met.features = std::max<std::uint64_t>(met.features, head.features);
    met.progress += head.progress;
    met.agreed.stop |= head.stop != 0;
    met.agreed.save |= head.save != 0;
    met.agreed.admit |= head.admit != 0;
    weighted = weighted || head.weighted != 0;
  }
  met.progress /= members_;
  const std::size_t width = numbers_ ? spread_.ColumnsOf(*numbers_, me_).size() : width_;
  rows_.ClearRows();
  for (const Given& given : given_) {
    const std::size_t rows = given.head.rows;
    const std::span<const std::uint32_t> words(given.words);
    std::size_t at = rows;
    AddFloats(words.first(rows), rows_.labels);
    if (given.head.weighted != 0) {
      AddFloats(words.subspan(at, rows), rows_.weights);
      at += rows;
    } else if (weighted) {
      for (std::size_t r = 0; r < rows; ++r) rows_.weights.Append(1.0f);
    }
    if (width_ > 0)
      AddFloats(words.subspan(at), rows_.dense);
    else
      AddEntries(words.subspan(at), rows);
  }
  met.rows.labels = rows_.labels.data();
  if (weighted) met.rows.weights = rows_.weights.data();
  if (width_ == 0) {
    met.rows.offsets = rows_.offsets.data();
    met.rows.indices = rows_.indices.data();
    met.rows.values = rows_.values.data();
  } else {
    rows_.dense.Reserve(1);  // a member may have no column
    met.rows.dense = rows_.dense.data();
    met.rows.width = width;
  }
  return met;
}

void HandedRows::AddEntries(std::span<const std::uint32_t> words, std::size_t rows) {
  const auto before = static_cast<std::uint32_t>(rows_.indices.size());
  for (std::size_t r = 0; r < rows; ++r) rows_.offsets.Append(before + words[r]);
  for (std::size_t e = rows; e < words.size(); e += 2) {
    rows_.indices.Append(words[e]);
    rows_.values.Append(std::bit_cast<float>(words[e + 1]));
  }
}

}  // namespace freshet::strategy::ring
