// How letters of a parameter server are sent, served and waited for.

#include "strategy/server/server.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace freshet::strategy::server {

void Server::KeepPushes(Estate::Share& share, std::uint64_t clock, const Copy::Letters& letters) const {
  if (!estate_.keeps) return;
  for (std::size_t s = 0; s < letters.size(); ++s) share.kept[s].push_back({clock, letters[s]});
}

Copy::Letters Server::AskAboutKept(const Estate::Share& share) {
  std::vector<bool> many;
  for (const auto& kept : share.kept) many.push_back(kept.size() >= kMostKept);
  return estate_.copy.AskHave(many);
}

Copy::Letters Server::Bundle(int worker, std::vector<Copy::Letters> all) {
  Copy::Letters bundled(static_cast<std::size_t>(estate_.shards));
  for (std::size_t s = 0; s < bundled.size(); ++s) {
    std::vector<std::vector<std::byte>*> letters;
    for (Copy::Letters& each : all)
      if (s < each.size() && !each[s].empty()) letters.push_back(&each[s]);
    for (const auto* letter : letters)
      if (static_cast<Kind>((*letter)[0]) != Kind::kPush) expected_[s].push_back(world_.clock.Now());
    if (letters.empty()) continue;
    if (!estate_.keeps && (letters.size() == 1 || static_cast<Kind>((*letters[0])[0]) == Kind::kPush)) {
      bundled[s] = Append(letters);
      continue;
    }
    BundleHead head{.shard = static_cast<std::uint16_t>(s),
                    .worker = static_cast<std::uint16_t>(worker),
                    .letters = letters.size()};
    for (const auto* letter : letters) head.hollow += LeftOut(*letter);
    Writer writer(head);
    for (const auto* letter : letters) {
      const std::uint64_t size = letter->size();
      writer.Put(&size, sizeof size);
      writer.Put(letter->data(), size);
    }
    bundled[s] = writer.Take();
  }
  return bundled;
}

// To the first, which may be long: without a copy of it.
std::vector<std::byte> Server::Append(const std::vector<std::vector<std::byte>*>& letters) {
  const std::uint64_t bytes = letters[0]->size();
  if (letters.size() == 1) return std::move(*letters[0]);
  std::memcpy(letters[0]->data() + offsetof(PushHead, bytes), &bytes, sizeof bytes);
  Writer writer(std::move(*letters[0]));
  for (std::size_t i = 1; i < letters.size(); ++i) {
    const std::uint64_t size = letters[i]->size();
    writer.Put(&size, sizeof size);
    writer.Put(letters[i]->data(), size);
  }
  return writer.Take();
}

Result<void> Server::SendAll(Copy::Letters letters_by_shard) {
  for (std::size_t s = 0; s < letters_by_shard.size(); ++s) {
    auto& bytes = letters_by_shard[s];
    const int to = HostOf(static_cast<int>(s));
    if (bytes.empty()) continue;
    const std::size_t hollow = LeftOut(bytes);
    TRY(to == rank() ? Handle(to, bytes) : letters().Send(to, std::move(bytes), hollow));
  }
  return {};
}

Result<void> Server::GoOn() {
  estate_.copy.Forget();
  TRY(Open());
  for (auto& [worker, share] : estate_.shares)
    for (std::size_t s = 0; s < share.kept.size(); ++s)
      for (const Estate::Kept& kept : share.kept[s]) {
        Copy::Letters letters(share.kept.size());
        letters[s] = kept.letter;
        const Notice none;  // what was ordered before is not any more, unless somebody has followed it
        std::memcpy(letters[s].data() + offsetof(PushHead, notice), &none, sizeof none);
        TRY(SendAll(Bundle(worker, {std::move(letters)})));
      }
  return {};
}

// Of an answer by this member itself.
Result<void> Server::OnLetter(int from, std::span<const std::byte> bytes) {
  if (from != rank()) return Reader::Damaged();
  return TakeAnswer(bytes);
}

Result<bool> Server::Serve(int from, std::span<const std::byte> bytes) {
  const auto kind = static_cast<Kind>(bytes[0]);
  if (kind < Kind::kPush || kind > Kind::kHave || kind == Kind::kAnswer) return false;
  TRY(Handle(from, bytes));
  return true;
}

Result<void> Server::Handle(int from, std::span<const std::byte> bytes) {
  const base::Lock lock(mutex_);
  Reader reader(bytes);
  switch (static_cast<Kind>(bytes[0])) {
    case Kind::kBundle: {
      const auto head = TRY(reader.Take<BundleHead>());
      const int shard = estate_.keeps ? head.shard : rank() - (size() - estate_.shards);
      const int worker = estate_.keeps ? head.worker : from;
      for (std::uint64_t i = 0; i < head.letters; ++i)
        TRY(TakeIn(shard, worker, TRY(reader.Bytes(TRY(reader.Take<std::uint64_t>()))), true));
      break;
    }
    case Kind::kForward: {
      const auto head = TRY(reader.Take<ForwardHead>());
      const auto holding = estate_.holdings.find(head.shard);
      if (holding == estate_.holdings.end() || head.number != holding->second.letters + 1) return Reader::Damaged();
      TRY(TakeIn(head.shard, head.worker, bytes.subspan(sizeof head), false));
      break;
    }
    case Kind::kHave: {
      const auto head = TRY(reader.Take<HaveHead>());
      TRY(Release(head.shard, head.number));
      break;
    }
    case Kind::kPush: {
      const int shard = rank() - (size() - estate_.shards);
      const auto head = TRY(Reader(bytes).Take<PushHead>());
      TRY(TakeIn(shard, from, TRY(reader.Bytes(head.bytes == 0 ? bytes.size() : head.bytes)), true));
      while (reader.left() > 0) TRY(TakeIn(shard, from, TRY(reader.Bytes(TRY(reader.Take<std::uint64_t>()))), true));
      break;
    }
    default:
      TRY(TakeIn(rank() - (size() - estate_.shards), from, bytes, true));
  }
  while (!sent_.empty() && world_.collectives.fabric().Done(sent_.front().transfer)) {
    TRY(world_.collectives.fabric().Wait(sent_.front().transfer));
    sent_.pop_front();
  }
  return {};
}

Result<void> Server::TakeIn(int shard, int worker, std::span<const std::byte> letter, bool first) {
  const auto found = estate_.holdings.find(shard);
  if (found == estate_.holdings.end() || found->second.shard == nullptr || first != Answers(shard) || letter.empty() ||
      worker >= estate_.workers)
    return Reader::Damaged();
  if (static_cast<Kind>(letter[0]) == Kind::kTicket) {
    const auto wanted = TRY(Reader(letter).Take<Ticket>());
    if (wanted.count > kMostAhead) return Reader::Damaged();
    const std::uint64_t next = std::exchange(next_ticket_, next_ticket_ + wanted.count);
    return Answer({worker, Writer(Ticket{.piece = next, .count = wanted.count}).Take()});
  }
  Estate::Holding& holding = found->second;
  auto answers = TRY(holding.shard->On(worker, letter, world_.clock.Now()));
  Spend(holding.shard->TakeEffort());
  ++holding.letters;
  const std::uint64_t shown = std::exchange(holding.shown, holding.shard->updates());
  if (world_.panel != nullptr && first) world_.panel->AddUpdates(holding.shown - shown);
  const std::vector<int>& chain = estate_.chains[static_cast<std::size_t>(shard)];
  const auto here = std::find(chain.begin(), chain.end(), rank());
  CHECK(here != chain.end());
  if (here + 1 != chain.end()) {
    Writer writer(ForwardHead{.shard = static_cast<std::uint16_t>(shard),
                              .worker = static_cast<std::uint16_t>(worker),
                              .number = holding.letters});
    writer.Put(letter.data(), letter.size());
    TRY(Write(*(here + 1), letters().tag(), writer.Take()));
  } else if (!first) {
    TRY(Write(chain.front(), letters().tag(),
              Writer(HaveHead{.shard = static_cast<std::uint16_t>(shard), .number = holding.letters}).Take()));
  }
  for (Shard::Answer& answer : answers) {
    if (chain.size() == 1)
      TRY(Answer(std::move(answer)));
    else
      withheld_.push_back({shard, holding.letters, std::move(answer)});
  }
  return {};
}

Result<void> Server::Release(int shard, std::uint64_t up_to) {
  std::deque<Withheld> rest;
  for (Withheld& each : withheld_) {
    if (each.shard == shard && each.letter <= up_to)
      TRY(Answer(std::move(each.answer)));
    else
      rest.push_back(std::move(each));
  }
  withheld_ = std::move(rest);
  return {};
}

Result<void> Server::Answer(Shard::Answer answer) {
  const int to = estate_.worker_at[static_cast<std::size_t>(answer.to)];
  if (to != rank()) return Write(to, answer_tag_, std::move(answer.bytes));
  letters().SendToSelf(std::move(answer.bytes));
  return {};
}

Result<void> Server::Write(int to, fabric::Tag tag, std::vector<std::byte> bytes) {
  Sent& sent = sent_.emplace_back(Sent{std::move(bytes), {}});
  sent.transfer = TRY(world_.collectives.fabric().StartHollowSend(to, tag, sent.bytes, LeftOut(sent.bytes)));
  return {};
}

Result<void> Server::TakeAnswer(std::span<const std::byte> bytes) {
  const bool ticket = !bytes.empty() && static_cast<Kind>(bytes[0]) == Kind::kTicket;
  const std::size_t shard = ticket ? 0 : TRY(Reader(bytes).Take<AnswerHead>()).shard;
  if (shard >= expected_.size() || expected_[shard].empty()) return Reader::Damaged();
  const auto took = world_.clock.Now() - expected_[shard].front();
  expected_[shard].pop_front();
  if (!Answers(static_cast<int>(shard))) fastest_ = std::min(fastest_.value_or(took), took);
  if (ticket) {
    const auto given = TRY(Reader(bytes).Take<Ticket>());
    if (given.count > tickets_coming_) return Reader::Damaged();
    for (std::uint64_t i = 0; i < given.count; ++i) tickets_.push_back(given.piece + i);
    tickets_coming_ -= given.count;
    return {};
  }
  const AnswerHead head = TRY(estate_.copy.Take(static_cast<int>(shard), bytes));
  Spend(estate_.copy.TakeEffort());
  waits_.Took(head);
  newest_ = std::max(newest_, head.clock);
  const Notice& notice = head.notice;
  Learn({notice.number, notice.clock, static_cast<Order>(notice.what), notice.synchrony});
  if (!estate_.keeps) return {};
  estate_.Forget(shard, head.clock);
  auto& kept = estate_.shares[head.worker].kept[shard];
  while (!kept.empty() && kept.front().clock < head.have) kept.pop_front();
  return {};
}

Result<void> Server::AwaitAnswers() {
  TRY(ListenForAnswers());
  while (!coming_.empty()) TRY(AwaitAnswer(0));
  return AwaitOwnAnswers();
}

Result<void> Server::AwaitOwnAnswers() {
  for (int s = 0; s < estate_.shards; ++s)
    while (Answers(s) && !expected_[static_cast<std::size_t>(s)].empty()) TRY(AwaitLetter());
  return {};
}

Result<void> Server::TakeAnswers(const std::function<bool()>& enough) {
  fabric::Fabric& fabric = world_.collectives.fabric();
  TRY(AwaitOwnAnswers());
  TRY(ListenForAnswers());
  while (!coming_.empty()) {
    const std::vector<std::size_t> next = NextOfEach();
    const auto here =
        std::find_if(next.begin(), next.end(), [&](std::size_t i) { return fabric.Done(coming_[i].transfer); });
    if (here != next.end()) {
      TRY(AwaitAnswer(*here));
      continue;
    }
    if (enough()) break;
    std::vector<fabric::Transfer> transfers;
    for (const std::size_t i : next) transfers.push_back(coming_[i].transfer);
    TRY(AwaitAnswer(next[TRY(fabric.WaitAny(transfers, Letterbox::kPatience))]));
  }
  return {};
}

// What a server answers is taken in the order in which it did, whatever comes while one looks.
std::vector<std::size_t> Server::NextOfEach() const {
  std::vector<std::size_t> next;
  for (std::size_t i = 0; i < coming_.size(); ++i)
    if (std::none_of(next.begin(), next.end(), [&](std::size_t j) { return coming_[j].shard == coming_[i].shard; }))
      next.push_back(i);
  return next;
}

Result<void> Server::ListenForAnswers() {
  for (int s = 0; s < estate_.shards; ++s) {
    const auto here =
        std::count_if(coming_.begin(), coming_.end(), [s](const Coming& each) { return each.shard == s; });
    for (auto i = here; !Answers(s) && i < std::ssize(expected_[static_cast<std::size_t>(s)]); ++i)
      coming_.push_back({s, TRY(world_.collectives.fabric().StartBorrow(HostOf(s), answer_tag_))});
  }
  return {};
}

Result<void> Server::AwaitAnswer(std::size_t i) {
  fabric::Fabric& fabric = world_.collectives.fabric();
  const Coming coming = coming_[i];
  coming_.erase(coming_.begin() + static_cast<std::ptrdiff_t>(i));
  const fabric::Arrived arrived = TRY(fabric.Wait(coming.transfer, Letterbox::kPatience));
  auto taken = TakeAnswer(arrived.view);
  fabric.Release(coming.transfer);
  return taken;
}

}  // namespace freshet::strategy::server
