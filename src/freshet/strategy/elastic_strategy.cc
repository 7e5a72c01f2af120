#include "strategy/elastic_strategy.h"

#include "strategy/elastic.h"
#include "strategy/server/elastic_server.h"

namespace freshet::strategy {

Result<std::unique_ptr<ElasticStrategy>> ElasticStrategy::Make(ElasticOptions options, fabric::ElasticGroup& group,
                                                               const Learner& learner) {
  if (options.strategy.kind == "server")
    return std::unique_ptr<ElasticStrategy>(TRY(server::ElasticServer::Make(std::move(options), group, learner)));
  return std::unique_ptr<ElasticStrategy>(TRY(Elastic::Make(std::move(options), group, learner)));
}

}  // namespace freshet::strategy
