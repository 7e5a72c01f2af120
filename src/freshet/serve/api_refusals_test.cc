// What the server refuses, with which words, and that nobody else notices.

#include <atomic>
#include <filesystem>
#include <thread>

#include "serve/api_testing.h"

namespace freshet::serve {
namespace {

constexpr std::string_view kPredict = "predict-predict-predict", kLearn = "learn-learn-learn-learn";
constexpr std::string_view kAdmin = "admin-admin-admin-admin";

std::string Bearer(std::string_view token) { return Str("Authorization: Bearer ", token, "\r\n"); }

struct Refused {
  std::string what;     // it is about
  std::string request;  // as it is sent
  int status;
  std::string says;  // somewhere in the answer
};

std::string As(std::string_view token, std::string_view path, std::string_view body, std::string_view more = "") {
  return Post(path, body, Str(Bearer(token), "Content-Type: application/json\r\n", more));
}
std::string Infer(const std::string& model, std::string_view body, std::string_view more = "") {
  return As(kPredict, Str("/v2/models/", model, "/infer"), body, more);
}
std::string Learn(const std::string& model, std::string_view body) {
  return As(kLearn, Str("/v2/models/", model, "/learn"), body);
}
std::string Steer(const std::string& call, std::string_view body) {
  return As(kAdmin, "/v2/models/dense/" + call, body);
}
// An infer body with one tensor x, written out.
std::string X(std::string_view shape, std::string_view data, std::string_view type = "FP32") {
  return Str(R"({"inputs":[{"name":"x","shape":)", shape, R"(,"datatype":")", type, R"(","data":)", data, "}]}");
}
// A learn body: one good row, and what comes with it.
std::string Row(std::string_view more) {
  return Str(R"({"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[1,2,3]},)", more, "]}");
}
std::string Sparse(std::string_view starts, std::string_view indices, std::string_view values) {
  const auto size = [](std::string_view list) { return std::count(list.begin(), list.end(), ',') + 1; };
  return Str(R"({"inputs":[{"name":"indptr","shape":[)", size(starts), R"(],"datatype":"INT64","data":[)", starts,
             R"(]},{"name":"indices","shape":[)", size(indices), R"(],"datatype":"INT64","data":[)", indices,
             R"(]},{"name":"values","shape":[)", size(values), R"(],"datatype":"FP32","data":[)", values, "]}]}");
}
std::string Nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

const std::string kGood = X("[1,3]", "[1,2,3]");
const std::string kLabel = R"({"name":"labels","shape":[1],"datatype":"INT64","data":[1]})";

std::vector<Refused> BadTensors() {
  return {
      {"no body", Infer("dense", ""), 400, "found nothing, expected an object"},
      {"no JSON", Infer("dense", "hello"), 400, "the body is not valid JSON"},
      {"half a JSON", Infer("dense", kGood.substr(0, 40)), 400, "the body is not valid JSON"},
      {"an array", Infer("dense", "[]"), 400, "the body is an array, expected an object"},
      {"deep JSON", Infer("dense", Str(R"({"inputs":)", Nested(60), "}")), 400, "nested deeper than 32 levels"},
      {"very deep JSON", Infer("dense", Str(R"({"a":)", Nested(50'000), "}")), 400, "nested deeper than 32 levels"},
      {"bytes that are no UTF-8", Infer("dense", "{\"inputs\":\"\xff\xfe\"}"), 400, "it is not UTF-8"},
      {"no inputs", Infer("dense", "{}"), 400, "inputs is missing"},
      {"empty inputs", Infer("dense", R"({"inputs":[]})"), 400, "expected at least one tensor"},
      {"inputs of another type", Infer("dense", R"({"inputs":7})"), 400, "inputs is 7, expected an array"},
      {"a tensor without a name", Infer("dense", R"({"inputs":[{}]})"), 400, "name is missing"},
      {"a tensor without a datatype", Infer("dense", R"({"inputs":[{"name":"x","shape":[1]}]})"), 400,
       "datatype is missing"},
      {"an unknown datatype", Infer("dense", X("[1,3]", "[1,2,3]", "FP8")), 400, "datatype 'FP8', expected one of"},
      {"texts for numbers", Infer("dense", X("[1,3]", R"(["a","b","c"])", "BYTES")), 400, "expected a type of numbers"},
      {"a wrong width", Infer("dense", X("[1,4]", "[1,2,3,4]")), 400, "shape [1,4], expected [-1,3]"},
      {"a shape of one size", Infer("dense", X("[3]", "[1,2,3]")), 400, "shape [3], expected"},
      {"too few values", Infer("dense", X("[2,3]", "[1,2,3]")), 400, "needs 6 values, got 3"},
      {"a negative size", Infer("dense", X("[-1,3]", "[1,2,3]")), 400, "has a negative size"},
      {"half a row", Infer("dense", X("[0.5,3]", "[1,2]")), 400, "has a size that is no whole number"},
      {"an empty shape", Infer("dense", X("[]", "[1]")), 400, "is empty, expected the number of rows first"},
      {"a shape beyond counting", Infer("dense", X("[4611686018427387904,8]", "[1]")), 400,
       "more values than can be counted"},
      {"a shape beyond memory", Infer("dense", X("[3000000000000,3]", "[1]")), 400,
       "needs 9000000000000 values, got 1"},
      {"a shape of nine sizes", Infer("dense", X("[1,1,1,1,1,1,1,1,3]", "[1,2,3]")), 400, "more than 8 sizes"},
      {"wrong nesting", Infer("dense", X("[2,3]", "[[1,2,3],[4,5]]")), 400, "data is not nested as shape"},
      {"a text among numbers", Infer("dense", X("[1,3]", R"([1,"2",3])")), 400, "expected a finite number"},
      {"NaN", Infer("dense", X("[1,3]", "[1,NaN,3]")), 400, "the body is not valid JSON"},
      {"a number beyond floats", Infer("dense", X("[1,3]", "[1,1e300,3]")), 400, "expected a finite number"},
      {"a number beyond doubles", Infer("dense", X("[1,3]", "[1,1e999,3]")), 400, "the body is not valid JSON"},
      {"a missing value", Infer("dense", X("[1,3]", "[1,null,3]")), 400, "is null, expected a finite number"},
      {"an unknown tensor",
       Infer("dense", R"({"inputs":[{"name":"y","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]})"), 400,
       "the model has no such input, expected 'x'"},
      {"a tensor twice", Infer("dense", Row(kGood.substr(11, kGood.size() - 13))), 400, "input 'x': stands twice"},
      {"65 tensors",
       [] {
         std::vector<std::string> tensors;
         for (int i = 0; i < 65; ++i)
           tensors.push_back(Str(R"({"name":"t)", i, R"(","shape":[1],"datatype":"FP32","data":[1]})"));
         return Infer("dense", Str(R"({"inputs":[)", Join(tensors, ","), "]}"));
       }(),
       400, "65 tensors, expected at most 64"},
      {"an unknown output", Infer("dense", kGood.substr(0, kGood.size() - 1) + R"(,"outputs":[{"name":"y"}]})"), 400,
       "the model has no such output, expected 'score' or 'label'"},
      {"an id of 129 bytes",
       Infer("dense", Str(R"({"id":")", std::string(129, 'i'), "\",", std::string_view(kGood).substr(1))), 400,
       "id has 129 bytes, expected at most 128"},
      {"an id that is a number", Infer("dense", R"({"id":7,)" + kGood.substr(1)), 400, "id is 7, expected a string"},
      {"100,001 rows",
       Infer("sparse", Sparse(
                           [] {
                             std::string starts = "0";
                             for (int i = 0; i < 100'001; ++i) starts += ",0";
                             return starts;
                           }(),
                           "1", "1")),
       400, "100001 rows, expected at most 100000"},
      {"binary data without its header",
       Infer("dense",
             R"({"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","parameters":{"binary_data_size":12}}]})"),
       400, "no header Inference-Header-Content-Length"},
      {"a binary tensor that ends early",
       Infer("dense",
             R"({"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","parameters":{"binary_data_size":12}}]})",
             "Inference-Header-Content-Length: 94\r\n"),
       400, "bytes are left in the body"},
      {"a JSON part longer than the body", Infer("dense", kGood, "Inference-Header-Content-Length: 99999\r\n"), 400,
       "but the body has"},
      {"a JSON part of no number", Infer("dense", kGood, "Inference-Header-Content-Length: all\r\n"), 400,
       "expected the number of bytes of the JSON"},
      {"bytes nobody asked for",
       Infer("dense", kGood + "abc", Str("Inference-Header-Content-Length: ", kGood.size(), "\r\n")), 400,
       "3 bytes after the last binary tensor"},
      {"an index out of order", Infer("sparse", Sparse("0,2", "7,3", "1,1")), 400, "expected ascending order"},
      {"an index below the first", Infer("sparse", Sparse("0,1", "-1", "1")), 400, "expected 1 or more"},
      {"an index beyond what a model may have",
       Learn("sparse",
             [] {
               std::string body = Sparse("0,1", "4294967296", "1");
               return body.insert(body.size() - 2, "," + kLabel);
             }()),
       400, "index 4294967296, expected at most"},
      {"indptr that runs backwards", Infer("sparse", Sparse("0,2,1", "1,2", "1,1")), 400, "expected an end from"},
      {"more values than indices", Infer("sparse", Sparse("0,2", "1,2", "1,1,1")), 400, "'values'"},
      {"a sparse row without values",
       Infer("sparse", R"({"inputs":[{"name":"indptr","shape":[1],"datatype":"INT64","data":[0]}]})"), 400,
       "input 'indices' is missing"},
      {"an unknown column",
       Infer("table", R"({"inputs":[{"name":"height","shape":[1],"datatype":"FP32","data":[1]}]})"), 400, "'height'"},
      {"columns of two lengths",
       Infer("table", R"({"inputs":[{"name":"age","shape":[1],"datatype":"FP32","data":[1]},)"
                      R"({"name":"income","shape":[2],"datatype":"FP32","data":[1,2]}]})"),
       400, "shape [2], expected [1] or [1,1]"},
      {"a rating without its item",
       Infer("ratings", R"({"inputs":[{"name":"user","shape":[1],"datatype":"BYTES","data":["ann"]}]})"), 400,
       "'item'"},
  };
}

std::vector<Refused> BadLessons() {
  return {
      {"no label", Learn("dense", kGood), 400, "input 'labels' is missing, expected a label for each row"},
      {"an unknown label", Learn("dense", Row(R"({"name":"labels","shape":[1],"datatype":"BYTES","data":["maybe"]})")),
       400, "label 'maybe', expected"},
      {"a label beyond the classes",
       Learn("dense", Row(R"({"name":"labels","shape":[1],"datatype":"INT64","data":[7]})")), 400, "label 7, expected"},
      {"two labels for a row", Learn("dense", Row(R"({"name":"labels","shape":[2],"datatype":"INT64","data":[1,0]})")),
       400, "shape [2], expected [1] or [1,1]"},
      {"a negative weight",
       Learn("dense", Row(kLabel + R"(,{"name":"weights","shape":[1],"datatype":"FP32","data":[-1]})")), 400,
       "value 0 is -1, expected 0 or more"},
      {"a time with a fraction",
       Learn("dense", Row(kLabel + R"(,{"name":"times","shape":[1],"datatype":"FP32","data":[1.5]})")), 400,
       "expected a type of whole numbers"},
      {"an empty id of a row",
       Learn("dense", Row(kLabel + R"(,{"name":"ids","shape":[1],"datatype":"BYTES","data":[""]})")), 400,
       "value 0 has 0 bytes, expected 1 to 128"},
      {"a huge id of a row",
       Learn("dense", Row(Str(kLabel, R"(,{"name":"ids","shape":[1],"datatype":"BYTES","data":[")",
                              std::string(5'000, 'i'), R"("]})"))),
       400, "value 0 has 5000 bytes, expected 1 to 128"},
      {"ids that are numbers",
       Learn("dense", Row(kLabel + R"(,{"name":"ids","shape":[1],"datatype":"INT64","data":[1]})")), 400,
       "expected BYTES"},
      {"feedback without an id", As(kLearn, "/v2/models/dense/feedback", R"({"label":1})"), 400, "id is missing"},
      {"feedback without a label", As(kLearn, "/v2/models/dense/feedback", R"({"id":"a"})"), 400, "label is missing"},
      {"feedback with both", As(kLearn, "/v2/models/dense/feedback", R"({"id":"a","label":1,"labels":[1]})"), 400,
       "found both label and labels"},
      {"feedback with an unknown key", As(kLearn, "/v2/models/dense/feedback", R"({"id":"a","lable":1})"), 400,
       "unknown key 'lable', expected id, label, labels"},
      {"feedback with a label nobody knows", As(kLearn, "/v2/models/dense/feedback", R"({"id":"a","label":"hm"})"), 400,
       "label 'hm', expected"},
      {"recommendations of a linear model", As(kPredict, "/v2/models/dense/recommend", R"({"user":"1"})"), 400,
       "is not a factorization"},
      {"recommendations for nobody", As(kPredict, "/v2/models/ratings/recommend", "{}"), 400, "user is missing"},
      {"no recommendations", As(kPredict, "/v2/models/ratings/recommend", R"({"user":"1","k":0})"), 400,
       "k is 0, expected 1 to 10000"},
      {"a million recommendations", As(kPredict, "/v2/models/ratings/recommend", R"({"user":"1","k":1000000})"), 400,
       "k is 1000000, expected 1 to 10000"},
  };
}

std::vector<Refused> BadSteering() {
  return {
      {"a rollback to nowhere", Steer("rollback", "{}"), 400, "version is missing"},
      {"a rollback to an unknown version", Steer("rollback", R"({"version":"99"})"), 404, "version 99 is not kept"},
      {"a rollback to no number", Steer("rollback", R"({"version":"best"})"), 404, "there is no version 'best'"},
      {"a rollback to a number as a number", Steer("rollback", R"({"version":0})"), 400,
       "version is 0, expected a string"},
      {"a discard of one number", Steer("rollback", R"({"version":"0","discard":[1]})"), 400,
       "discard: expected [from, to]"},
      {"a discard that runs backwards", Steer("rollback", R"({"version":"0","discard":[5,2]})"), 400,
       "discard: expected [from, to]"},
      {"a discard of nothing", Steer("rollback", R"({"version":"0","discard":[5,5]})"), 400, "from below to"},
      {"a discard of what is not there", Steer("rollback", R"({"version":"0","discard":[-3,2]})"), 400,
       "discard: expected [from, to]"},
      {"a pin of an unknown version", Steer("pin", R"({"version":"99","pinned":true})"), 404, "version 99 is not kept"},
      {"a pin without a word", Steer("pin", R"({"version":"0"})"), 400, "pinned is missing"},
      {"an iteration where there are none", Steer("iterate", "{}"), 400, "method baseline+ runs no iterations"},
      {"an iteration with wishes", Steer("iterate", R"({"rows":5})"), 400, "unknown key 'rows'"},
      {"a data set outside the roots", Steer("datasets", R"({"path":"/etc/passwd"})"), 400,
       "expected a file below a directory that the server was given"},
      {"a data set by a detour", Steer("datasets", R"({"path":"ROOT/../secret.csv"})"), 400, "expected a file below"},
      {"a data set by a link", Steer("datasets", R"({"path":"ROOT/link.csv"})"), 400, "expected a file below"},
      {"a data set by a pattern that meets a link", Steer("datasets", R"({"path":"ROOT/*nk.csv"})"), 400,
       "expected a file below"},
      {"a data set through a folder that is a link", Steer("datasets", R"({"path":"ROOT/el*/secret.csv"})"), 400,
       "expected a file below"},
      {"a pipe as a data set", Steer("datasets", R"({"path":"ROOT/pipe.csv"})"), 400, "is no regular file"},
      {"a folder as a data set", Steer("datasets", R"({"path":"ROOT/folder"})"), 400, "is no regular file"},
      {"a data set beside a root", Steer("datasets", R"({"path":"ROOT-more/a.csv"})"), 400, "expected a file below"},
      {"a root as a data set", Steer("datasets", R"({"path":"ROOT"})"), 400, "expected a file below"},
      {"a data set with a NUL", Steer("datasets", R"({"path":"ROOT/a\u0000.csv"})"), 400, "expected a text"},
      {"a data set that is not there", Steer("datasets", R"({"path":"ROOT/missing.csv"})"), 404, "missing.csv"},
      {"a data set of another shape", Steer("datasets", R"({"path":"ROOT/wrong.csv"})"), 400, "wrong.csv"},
  };
}

std::vector<Refused> BadRoutes() {
  return {
      {"an unknown model", Infer("nobody", kGood), 404, "there is no model 'nobody'"},
      {"an unknown version", As(kPredict, "/v2/models/dense/versions/77/infer", kGood), 404, "has no version '77'"},
      {"a version of words", As(kPredict, "/v2/models/dense/versions/new/infer", kGood), 404, "has no version 'new'"},
      {"a negative version", As(kPredict, "/v2/models/dense/versions/-1/infer", kGood), 404, "has no version '-1'"},
      {"teaching an old version", As(kLearn, "/v2/models/dense/versions/0/learn", Row(kLabel)), 404,
       "a version has no call 'learn'"},
      {"an unknown call", As(kAdmin, "/v2/models/dense/explode", "{}"), 404, "there is no call 'explode'"},
      {"a path that goes on", As(kPredict, "/v2/models/dense/infer/more", kGood), 404, "there is nothing at"},
      {"nothing there", Get("/v3", Bearer(kPredict)), 404, "there is nothing at '/v3'"},
      {"infer by GET", Get("/v2/models/dense/infer", Bearer(kPredict)), 405, "infer is asked for by POST"},
      {"stats by POST", As(kPredict, "/v2/models/dense/stats", "{}"), 405, "stats is asked for by GET"},
      {"a model deleted", Str("DELETE /v2/models/dense HTTP/1.1\r\nHost: localhost\r\n", Bearer(kAdmin), "\r\n"), 405,
       "metadata is asked for by GET"},
      {"metrics by POST", As(kPredict, "/metrics", "{}"), 405, "this is asked for by GET"},
      {"no token", Post("/v2/models/dense/infer", kGood, "Content-Type: application/json\r\n"), 401, "token"},
      {"no token for metrics", Get("/metrics"), 401, "token"},
      {"a wrong token", As("wrong-wrong-wrong-wrong", "/v2/models/dense/infer", kGood), 401, "token"},
      {"learning with a token to predict", As(kPredict, "/v2/models/dense/learn", Row(kLabel)), 403, "token"},
      {"feedback with a token to predict", As(kPredict, "/v2/models/dense/feedback", R"({"id":"a","label":1})"), 403,
       "token"},
      {"steering with a token to learn", As(kLearn, "/v2/models/dense/rollback", R"({"version":"0"})"), 403, "token"},
      {"data sets with a token to learn", As(kLearn, "/v2/models/dense/datasets", R"({"path":"ROOT/a.csv"})"), 403,
       "token"},
      {"a form",
       Post("/v2/models/dense/infer", kGood, Bearer(kPredict) + "Content-Type: application/x-www-form-urlencoded\r\n"),
       415, "add the header Content-Type: application/json"},
      {"plain text", Post("/v2/models/dense/learn", Row(kLabel), Bearer(kLearn) + "Content-Type: text/plain\r\n"), 415,
       "Content-Type is 'text/plain'"},
      {"no type", Post("/v2/models/dense/learn", Row(kLabel), Bearer(kLearn)), 415, "there is no Content-Type"},
      {"no type and no body", Post("/v2/models/dense/iterate", "", Bearer(kAdmin)), 415, "there is no Content-Type"},
      {"almost a type",
       Post("/v2/models/dense/learn", Row(kLabel), Bearer(kLearn) + "Content-Type: application/jsonp-evil\r\n"), 415,
       "Content-Type is 'application/jsonp-evil'"},
      {"half a type",
       Post("/v2/models/dense/learn", Row(kLabel), Bearer(kLearn) + "Content-Type: application/octet\r\n"), 415,
       "Content-Type is 'application/octet'"},
      {"a body said to be compressed", Infer("dense", kGood, "Content-Encoding: gzip\r\n"), 400, "is not whole gzip"},
      {"a body compressed in another way", Infer("dense", kGood, "Content-Encoding: br\r\n"), 415,
       "the only Content-Encoding known here is gzip"},
  };
}

std::vector<Refused> BadHttp() {
  const std::string start = "POST /v2/models/dense/infer HTTP/1.1\r\nHost: localhost\r\n" + Bearer(kPredict);
  return {
      {"both lengths", start + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
       "exclude each other"},
      {"two lengths", start + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400,
       "more than one Content-Length"},
      {"a signed length", start + "Content-Length: +5\r\n\r\nhello", 400, "Content-Length is a number of bytes"},
      {"a body too large", start + "Content-Length: 99999999\r\n\r\n", 413, "the body is too large"},
      {"a large body without a token",
       "POST /v2/models/dense/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n", 401,
       "a body of this size needs a valid token"},
      {"a chunk with an extension", start + "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\n\r\n", 400,
       "hexadecimal digits alone"},
      {"a path that climbs", Get("/v2/models/../../etc/passwd", Bearer(kPredict)), 400, "the path holds .."},
      {"a path that climbs in disguise", Get("/v2/models/%2e%2e/secret", Bearer(kPredict)), 400, "the path holds .."},
      {"a slash in disguise", Get("/v2/models/dense%2finfer", Bearer(kPredict)), 400, "escape that is not accepted"},
      {"a NUL in the path", Get("/v2/models/dense%00", Bearer(kPredict)), 400, "escape that is not accepted"},
      {"a backslash", Get("/v2/models/dense\\x", Bearer(kPredict)), 400, "backslash"},
      {"a header of 9 kB", Get("/v2", Str("X-Long: ", std::string(9'000, 'x'), "\r\n")), 431,
       "the header is too large"},
      {"a foreign host", "GET /v2 HTTP/1.1\r\nHost: evil.example\r\n" + Bearer(kPredict) + "\r\n", 421,
       "this Host is not served here"},
      {"a foreign page",
       As(kAdmin, "/v2/models/dense/rollback", R"({"version":"0"})", "Origin: http://evil.example\r\n"), 403,
       "pages of another origin may not send this"},
      {"a method nobody knows", "BREW /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n", 501, "this method is not known here"},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "HTTP/2 is not spoken here"},
      {"a bare line feed", "GET /v2 HTTP/1.1\nHost: localhost\n\n", 400, "lines of the head end with CR LF"},
      {"a client too slow for its header", "GET /v2 HTTP/1.1\r\nHost: local", 408, "the header took too long"},
      {"a client too slow for its body", start + "Content-Length: 5000\r\n\r\n{", 408, "the body came too slowly"},
  };
}

class ApiRefusals : public testing::Test {
 protected:
  ApiRefusals() : roots_(MakeRoots()), server_({roots_}) {
    const data::Description dense = DenseInput(3, {"0", "1"});
    server_.Add("dense", dense, LinearFor(dense));
    server_.Add("sparse", SparseInput(), LinearFor(SparseInput()));
    server_.Add("table", TableInput(), LinearFor(TableInput()));
    server_.Add("ratings", RatingsInput(), FactorizationConfig());
    server_.Add("quiet", dense, LinearFor(dense));
    HttpOptions http;
    http.token_file =
        server_.scratch.Write("tokens", Str("predict ", kPredict, "\nlearn ", kLearn, "\nadmin ", kAdmin, "\n"));
    chmod(http.token_file.c_str(), 0600);
    http.limits.body_bytes = 1 << 20;
    http.limits.header_timeout = std::chrono::milliseconds(300);
    http.limits.rate_window = std::chrono::milliseconds(300);
    http.limits.rate_bytes_per_s = 1 << 20;
    server_.Start(http);
  }

  std::string MakeRoots() {
    std::filesystem::create_directory(outside_ / "root");
    outside_.Write("secret.csv", "1,2,3,yes\n");
    outside_.Write("root/wrong.csv", "a,b\n1,2\n");
    std::filesystem::create_symlink(outside_ / "secret.csv", outside_ / "root/link.csv");
    std::filesystem::create_symlink(outside_.path(), outside_ / "root/elsewhere");
    std::filesystem::create_directory(outside_ / "root/folder");
    CHECK(mkfifo((outside_ / "root/pipe.csv").c_str(), 0600) == 0);
    return std::filesystem::canonical(outside_ / "root").string();
  }

  // The request with ROOT in its body filled in; its length is right again.
  std::string Filled(const std::string& request) const {
    const std::size_t at = request.find("ROOT");
    if (at == std::string::npos) return request;
    std::string body = request.substr(request.find("\r\n\r\n") + 4);
    const std::size_t old = body.size();
    body.replace(body.find("ROOT"), 4, roots_);
    std::string head = request.substr(0, request.size() - old);
    const std::string length = Str("Content-Length: ", old);
    return head.replace(head.find(length), length.size(), Str("Content-Length: ", body.size())) + body;
  }

  void ExpectRefused(const Refused& refused) {
    SCOPED_TRACE(refused.what);
    ApiClient client(server_.port());
    const Reply reply = client.Ask(Filled(refused.request));
    EXPECT_EQ(reply.status, refused.status) << reply.body;
    ASSERT_TRUE(reply.json.is_object() && reply.json.contains("error")) << reply.head << reply.body;
    EXPECT_EQ(reply.json.size(), 1u) << reply.body;
    const std::string said = reply.json["error"];
    EXPECT_NE(said.find(refused.says), std::string::npos) << "'" << refused.says << "' is not in: " << said;
    // What the client did wrong is told; where things lie on this machine is not.
    EXPECT_EQ(said.find(server_.scratch.path()), std::string::npos) << said;
  }

  const base::ScratchDirectory outside_;
  const std::string roots_;
  ApiServer server_;
};

TEST_F(ApiRefusals, EveryMistakeHasItsStatusAndItsWordsAndNobodyElseNotices) {
  std::atomic<bool> done{false};
  std::atomic<int> answered{0}, disturbed{0};
  std::thread polite([&] {
    ApiClient client(server_.port(), std::string(kPredict));
    const Reply first = client.Post("/v2/models/quiet/infer", kGood);
    while (!done) {
      const Reply reply = client.Post("/v2/models/quiet/infer", kGood);
      if (reply.status != 200 || reply.body != first.body) ++disturbed;
      ++answered;
    }
  });
  std::size_t count = 0;
  for (const auto& table : {BadTensors(), BadLessons(), BadSteering(), BadRoutes(), BadHttp()}) {
    for (const Refused& refused : table) ExpectRefused(refused);
    count += table.size();
  }
  done = true;
  polite.join();
  EXPECT_GE(count, 100u);
  EXPECT_GT(answered, 100);
  EXPECT_EQ(disturbed, 0);
  // Nothing that was refused was learned, kept or steered.
  for (ServedModel* const model : server_.api().models()) {
    EXPECT_EQ(model->deployment().stats().observations, 0u) << model->name();
    EXPECT_EQ(model->deployment().stats().roll_backs, 0u) << model->name();
    EXPECT_EQ(model->deployment().stats().problem, "") << model->name();
  }
}

TEST_F(ApiRefusals, TheConnectionIsGoodForAnotherRequestAfterAMistakeInTheBody) {
  ApiClient client(server_.port(), std::string(kPredict));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(client.Post("/v2/models/dense/infer", std::string("{}")).status, 400);
    EXPECT_EQ(client.Post("/v2/models/dense/infer", kGood).status, 200);
  }
}

TEST_F(ApiRefusals, GuessingTokensIsSlowedDown) {
  bool limited = false;
  for (int i = 0; i < 100 && !limited; ++i) {
    TestClient client(server_.port());
    const auto answer = client.Ask(As(Str("guess-guess-guess-", i), "/v2/models/dense/infer", kGood));
    limited = answer.status == 429;
    EXPECT_EQ(answer.status, limited ? 429 : 401);
  }
  EXPECT_TRUE(limited);
}

}  // namespace
}  // namespace freshet::serve
