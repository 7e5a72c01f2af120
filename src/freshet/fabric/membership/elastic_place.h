#pragma once

#include "fabric/membership/elastic_group.h"

namespace freshet::fabric {

// What a process needs to have a place in a group that outlives its members.
//
// Ownership: borrows the post.
struct ElasticPlace {
  Seat seat = {};
  Post* post = nullptr;
  ElasticGroup::Connect connect = {};  // for generations after the first
  ElasticGroup::Options options = {};
  bool comes = false;  // into a group that trains already
  int workers = 1;     // of its first generation
};

}  // namespace freshet::fabric
