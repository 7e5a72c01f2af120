#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace freshet::deploy {

// Rows that were predicted under an id and whose label may still come, packed (PackRow). Each belongs to an owner, the
// name of the token that asked ("" where there are no tokens): nobody replaces what another owner has under the same
// id, and who asks for too much pushes out rows of his own, as long as others hold less. Ids are compared whole, and
// kept in order, so that nobody gains by choosing them.
//
// Threads: one at a time. Memory: within the budget, in which a row counts with what it takes besides.
class Pending {
 public:
  // `ttl`: seconds a row waits; `most_bytes`: of all rows together.
  Pending(std::int64_t ttl, std::uint64_t most_bytes) : ttl_(ttl), most_bytes_(most_bytes) {}

  // A row that came at this time, in place of the one its owner had under the id. One whose label has come stays that.
  void Add(std::string owner, std::string id, std::int64_t time, std::string packed);
  // Null when there is none, its label has come, or it has expired. Valid until the next change.
  const std::string* Find(const std::string& owner, const std::string& id, std::int64_t now) const;
  // Those who hold a row under this id, its label come or not, in alphabetical order.
  std::vector<std::string> OwnersOf(const std::string& id, std::int64_t now) const;
  // Its label has come: the row goes, and that it was there is remembered until it would have expired.
  void Answer(const std::string& owner, const std::string& id);

  std::size_t size() const { return rows_.size(); }
  std::uint64_t bytes() const { return bytes_; }
  bool owned() const { return owners_.size() > owners_.count(""); }  // some row has an owner with a name

 private:
  struct Waiting;
  using Key = std::pair<std::string, std::string>;  // id, owner
  using Rows = std::map<Key, Waiting>;
  struct Waiting {
    std::int64_t time = 0;
    std::string packed;  // empty once the label has come
    std::list<Rows::iterator>::iterator place;
  };
  struct Owner {
    std::list<Rows::iterator> rows;  // oldest first
    std::uint64_t bytes = 0;
  };
  static std::uint64_t BytesOf(const Rows::value_type& row);
  bool Expired(const Waiting& row, std::int64_t now) const { return row.time + ttl_ < now; }
  void Count(const Rows::value_type& row, Owner& owner);
  void Uncount(const Rows::value_type& row, Owner& owner);
  void Erase(Rows::iterator row);
  void DropOne(std::int64_t now);

  const std::int64_t ttl_;
  const std::uint64_t most_bytes_;
  Rows rows_;
  std::map<std::string, Owner> owners_;  // those that have rows
  std::uint64_t bytes_ = 0;
};

}  // namespace freshet::deploy
