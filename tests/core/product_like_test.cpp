// Memory as a framework's: its bytes a parameter by hand, and which names, versions and policies have a meaning.
#include <gmock/gmock.h>

#include <bit>
#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "core/run/product.hpp"
#include "core/scenario/dirs.hpp"
#include "tests/common/run.hpp"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kGB = 1e9;
constexpr const char* kScenario =
    "machine: round_numbers\n"
    "workload: {family: gpt, layers: 4, hidden: 1024, heads: 8, vocabulary: 1000, sequence: 32, batch: 1, precision: "
    "fp16}\n"
    "policy: {name: zero_infinity, variant: deepspeed, parameters: host}\n"
    "steps: 2\n";

Scenario with(const std::vector<std::string>& changes) { return parse_scenario(kScenario, "like.yaml", changes); }

double parameters_of(const Scenario& scenario) {
  const auto run = testing::run_null(scenario);
  double parameters = 0;
  for (TensorId id = 0; id < run.scheduler->graph().tensor_count(); ++id)
    if (const Tensor& tensor = run.scheduler->graph().tensor(id); tensor.role == Role::Parameter)
      parameters += static_cast<double>(tensor.bytes / size_of(tensor.type));
  return parameters;
}

double peak(const Scenario& scenario, Tier tier) {
  const auto run = testing::run_null(scenario);
  EXPECT_EQ(run.violation, "");
  return static_cast<double>(run.scheduler->pool(tier).peak_bytes());
}

double rounded(double bytes) { return static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(bytes))); }

// What a run under this policy holds on its tier is the product's, to the percent: nothing counts twice.
void expect_total(const std::vector<std::string>& changes, Tier tier, double bytes) {
  const double found = peak(with(changes), tier);
  EXPECT_NEAR(found, bytes, 0.01 * bytes) << changes.back();
}

TEST(ProductLike, BytesAParameterByHand) {
  const double p = parameters_of(with({}));
  ASSERT_NEAR(p, 4 * 12 * 1024 * 1024 + 1000 * 1024, 0.01 * p);
  // 2 of parameters, 4 of masters, 8 of moments, 4 of gradients, beside a process of 3 GB.
  expect_total({"product={like: deepspeed-zero3, version: 0.5}"}, Tier::HostPinned, 18 * p + 3 * kGB);
  // Twice parameters and once gradients of 16 bits in pinned blocks, and gradients of 32 bits, rounded up.
  const double blocks = rounded(2 * p) + 2.6 * p + rounded(4 * p) + rounded(2 * p);
  expect_total({"product={like: deepspeed-zero3, version: 0.16}"}, Tier::HostPinned, 12 * p + blocks + 3 * kGB);
  expect_total(
      {"policy={name: zero_infinity, variant: deepspeed, parameters: device}", "product={like: deepspeed-zero3}"},
      Tier::HostPinned, 12 * p + rounded(4 * p) + rounded(2 * p) + 3 * kGB);
  expect_total({"product={like: fsdp2}"}, Tier::HostPinned, (4 * 1.3 + 4 + 8) * p + 3 * kGB);
  for (const char* precision : {"workload.precision=fp16", "workload.precision=bf16"}) {
    const std::string offload = "policy={name: zero_offload}";
    expect_total({precision, offload, "product={like: deepspeed-zero2, version: 0.5}"}, Tier::HostPinned,
                 20.8 * p + 3 * kGB);
    expect_total({precision, offload, "optimizer={masters: false, state_bits: 16}", "product={like: torchao}"},
                 Tier::HostPinned, (4 * 1.3 + 4) * p + 3 * kGB);
    expect_total({precision, "policy={name: resident}", "product={like: accelerate}"}, Tier::Device,
                 18 * p + 0.5 * kGB);
  }
}

TEST(ProductLike, SmallModelsThatLoadWholeTakeMoreToLoadThanToTrain) {
  const double p = parameters_of(with({}));
  // Eight processes make the whole model in fp32, each trains an eighth of 20.8 bytes a parameter.
  const Scenario ranks = with({"policy={name: zero_offload}", "workload.devices=8", "workload.partition=states",
                               "product={like: deepspeed-zero2, version: 0.5}"});
  EXPECT_NEAR(static_cast<double>(ranks.product.kept_bytes[static_cast<std::size_t>(Tier::HostPinned)]),
              4 * p + 3 * kGB - 14 * p / 8, 0.02 * p);
}

TEST(ProductLike, SaysWhoseRunItIs) {
  EXPECT_EQ(with({}).product.whose, "Tandem's own run");
  EXPECT_EQ(with({"product={like: deepspeed-zero3, version: 0.16}"}).product.whose, "as DeepSpeed 0.16 would");
  EXPECT_EQ(with({"product={like: fsdp2}"}).product.whose, "as FSDP2 would");
}

std::string refusal(const std::vector<std::string>& changes) {
  try {
    with(changes);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ProductLike, WhatHasNoMeaningIsRefused) {
  EXPECT_THAT(refusal({"product.like=deepspeed-zero4"}),
              AllOf(HasSubstr("product.like: there is no product 'deepspeed-zero4', did you mean 'deepspeed-zero"),
                    HasSubstr("torchao")));
  EXPECT_THAT(refusal({"product.like=../models/gpt2"}), HasSubstr("there is no product"));
  EXPECT_THAT(refusal({"product={like: deepspeed-zero3, version: 0.1}"}),
              HasSubstr("product.version: '0.1' is not known"));
  EXPECT_THAT(refusal({"product={like: deepspeed-zero3, version: new}"}),
              HasSubstr("product.version: 'new' is not known"));
  EXPECT_THAT(refusal({"product.like=deepspeed-zero2"}),
              HasSubstr("is another policy than zero_infinity as it is here; allowed: policy: {name: zero_offload}"));
  EXPECT_THAT(refusal({"policy={name: zero_infinity}", "product.like=deepspeed-zero3"}),
              HasSubstr("variant: deepspeed"));
  EXPECT_THAT(refusal({"policy={name: zero_offload}", "product.like=torchao"}), HasSubstr("optimizer.masters: false"));
  EXPECT_THAT(refusal({"workload.precision=fp32", "product.like=deepspeed-zero3"}), HasSubstr("fp16 or bf16"));
}

// Each file is read whole, in all its versions.
TEST(ProductLike, AllFilesAreSound) {
  const std::vector<std::string> policies{
      "{name: zero_offload}", "{name: resident}", "{name: zero_infinity, variant: deepspeed, parameters: host}",
      "{name: zero_infinity, variant: deepspeed, parameters: host, optimizer_states: disk}"};
  int read = 0;
  for (const std::string& folder : product_dirs())
    for (const std::string& stem : yaml_stems(folder))
      for (const std::string& policy : policies)
        for (const char* version : {"0.5", "0.16", "99"}) {
          const std::string why =
              refusal({"policy=" + policy, "product={like: " + stem + ", version: " + version + "}"});
          if (why.empty()) ++read;
          const bool is_sound = why.empty() || why.find("is another policy") != why.npos ||
                                why.find("is not known") != why.npos || why.find("has no masters") != why.npos;
          EXPECT_TRUE(is_sound) << why;
        }
  EXPECT_GE(read, 5 * 2);
}

}  // namespace
}  // namespace tandem
