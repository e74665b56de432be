// A scenario as checked values: machine, limits, product, workload, optimizer, data, policy, steps, seed.
// Filled by load_scenario (load.hpp); must not know YAML or any world.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/cropping.hpp"
#include "core/graph/graph.hpp"
#include "core/machine/profile.hpp"
#include "core/scenario/key_values.hpp"

namespace tandem {

struct Limits {  // caps on the machine; 0 means none, but for the disk, which a run may have to do without
  std::int64_t device_bytes = 0;
  std::int64_t host_bytes = 0;
  std::optional<std::int64_t> disk_bytes;
  std::int32_t cores = 0;
  double h2d_bytes_per_s = 0, d2h_bytes_per_s = 0;
};

// How a framework allocates, beside what the policy decides.
struct ProductOptions {
  double device_bytes_per_parameter = 0, host_bytes_per_parameter = 0;  // kept beside, of what a rank updates
  bool power_of_two_blocks = false;                                     // of pinned memory
  std::string like, version;               // a file of products/, and which of its versions; "": none, the latest
  std::string whose = "Tandem's own run";  // or "as DeepSpeed 0.16 would" (product.hpp)
  // The same in bytes of one rank, by tier (product.hpp).
  std::array<std::int64_t, kTierCount> kept_bytes{};
};

// Low-rank adapters beside linear layers (Hu et al. 2021, arXiv 2106.09685); rank 0: none.
struct LoraOptions {
  std::int64_t rank = 0;
  double alpha = 0;                  // what they add is multiplied by alpha / rank
  std::vector<std::string> targets;  // linear layers, by the last part of their name or by a pattern of all of it
};

// Frozen weights that are kept as codes (core/formats/weight_blocks.hpp).
struct CompressOptions {
  std::int64_t weights = 0;          // bits of one: 8 | 4; 0: as they are
  std::vector<std::string> modules;  // patterns of the modules whose weights are; none: all
};

// What is saved for backward is stored sparse (core/formats/sparse_blocks.hpp).
struct SparseActivationsOptions {
  double keep = 0;  // of a block's numbers, the share that is kept; 0: saved as it is
};

// Which share of samples has a modality ("image", "audio", "video"), from a training step on; all where not given.
struct MixPoint {
  std::int32_t from_step = 0;
  std::map<std::string, double> shares;
};
struct MixOptions {
  std::vector<MixPoint> points;  // in order of their steps; none: every sample has all that there is of it
  bool drifts = false;           // from one point to the next, not at once
  std::int64_t round = 0;        // items of a micro-batch are padded to a multiple; 0: an eighth of the batch
  double share(const std::string& modality, std::int64_t step) const;
  // As a run has it whose first step is this one.
  MixOptions from(std::int32_t step) const;
};

// What is computed: what all families that train have in common, and what the chosen one alone takes.
struct WorkloadOptions {
  std::string family;
  std::int64_t batch = 1, micro_batches = 1;
  DType precision = DType::F32;
  std::string recompute = "none";     // none | block | except_last | optimal
  std::int64_t checkpoint_every = 1;  // blocks in a row of which the first's input alone is kept, if they recompute
  std::int64_t activation_bytes = 0;  // optimal: what a micro-batch may take of the device; 0: by default
  std::int64_t devices = 1;           // data-parallel ranks
  std::int64_t tensor = 1;            // ranks that divide each layer: parallel.tensor
  std::string partition = "none";     // none | states | parameters: what each rank has a part of instead of all
  std::vector<std::string> trained;   // patterns of the weights that are; none: all, or with adapters none but those
  LoraOptions lora;
  CompressOptions compress;
  SparseActivationsOptions sparse_activations;
  MixOptions mix;
  KeyValues keys;      // those that the family's file declares
  KeyValues parallel;  // of `parallel`, those that transforms' files declare
  KeyValues generate;  // what the network generates (core/transforms/generation); none: it is trained
  // What the samples of a micro-batch have of each modality, where they are not all alike: "image": so many items.
  // None: each sample has one of each.
  std::map<std::string, std::int64_t> items;
  std::int64_t items_of(const std::string& modality, std::int64_t otherwise) const;
};

// How many devices divide what a step computes; how many train on samples of their own, WorkloadOptions::devices says.
struct ParallelOptions {
  bool fold = false;              // ranks that are alike are simulated by one
  std::int64_t pipeline = 1;      // stages, of which each rank computes one
  std::int64_t chunks = 1;        // pieces of the network that a stage has
  std::string schedule = "1f1b";  // one of core/transforms/pipeline/schedule.hpp
  Rank rank = 0;                  // no key: whose steps a policy plans for
};

struct OptimizerOptions {
  std::string name = "adamw";  // a file of core/optimizers
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  double momentum = 0;           // sgd's
  double clip_norm = 0;          // 0: no clipping
  std::int64_t state_bits = 32;  // of a number of the states: 32 | 16 | 8 | 4 (state_blocks.hpp)
  bool masters = true;           // 16-bit parameters have fp32 masters
  // fp16 only: the loss is multiplied by a scale that follows what fp16 can hold.
  bool loss_scaling = true;
  double initial_loss_scale = 65536;
  std::int64_t loss_scale_interval = 2000;  // steps without overflow after which the scale doubles
  // See learning_rate in schedule.hpp.
  std::string schedule = "constant";               // constant | linear | cosine
  std::int64_t warmup_steps = 0, decay_steps = 0;  // decay_steps 0: the training's steps
  double final_learning_rate = 0;
  std::string decay = "all";  // all | matrices: the parameters that weight_decay applies to
};

// What files of a modality are like, for a simulation: how they are encoded, a file's bytes, and what is decoded of it
// (pixels, or samples of sound). Of a manifest's files, the largest's bytes, too.
struct MediaFiles {
  std::string kind;
  std::int64_t bytes = 0, units = 0, most_bytes = 0;
};

// How batches of media come about (core/step/inputs.hpp).
struct PipelineOptions {
  bool given = false;  // else a batch is loaded in one
  std::int64_t workers = 1, remote_workers = 0;
  std::optional<double> remote_share;  // of items; none: the policy's choice
  double remote_bytes_per_s = 0;
  bool decode_on_device = false, transform_on_device = false;
  std::int32_t prefetch = 2;  // training steps
  bool skips_bad_samples = true;
  std::int64_t decoded_cache_bytes = 0, feature_cache_bytes = 0;  // 0: nothing is kept
  bool decoded_cache_on_disk = false;
  std::map<std::string, MediaFiles> files;   // by modality
  std::map<std::string, Cropping> cropping;  // of items that are trained on; held-out ones are never varied
  std::int64_t samples = 0;                  // of a data set without a manifest; 0: none comes twice
  std::int64_t graph_degree = 0;             // neighbours of a node, on the average; 0: not said
};

// Losses on data that is held out from training, while training.
struct ValidationOptions {
  std::int32_t every = 0;  // training steps from one evaluation to the next; 0: none
  std::int32_t batches = 8;
  double fraction = 0.1;  // of the data, its last part
};

struct PolicyOptions {
  std::string name;
  std::map<std::string, std::string> options;  // checked by the policy when it is made
  bool operator==(const PolicyOptions&) const = default;
};

// Another policy from some step on.
struct PolicySwitch {
  std::int32_t after_step = 0;  // training steps done by then, from the training's start
  PolicyOptions policy;
};

// Where a training run saves its state, and how often.
struct CheckpointOptions {
  std::string directory;   // "": nowhere
  std::int64_t every = 0;  // training steps from one to the next; 0: at the end alone
  std::int64_t keep = 2;   // complete ones
};

// How the simulated machine differs from the estimates that the policy sees. Identity by default.
// Factors on durations.
struct TruthTimes {
  double copy_time = 1, compute_time = 1, optimizer_time = 1, disk_time = 1;
};
// While training steps [from_step, to_step) compute, beside Truth's own; to_step 0: to the end.
struct Drift {
  std::int32_t from_step = 0, to_step = 0;
  TruthTimes times;
  bool holds(std::int32_t step) const { return step >= from_step && (to_step == 0 || step < to_step); }
};
// A rank all of whose commands take so many times as long.
struct Straggler {
  Rank rank = 0;
  double factor = 1;
};
struct Truth : TruthTimes {
  double noise = 0;  // relative standard deviation of each command's duration, seeded by Scenario::seed
  std::vector<Drift> drift;
  std::vector<Straggler> stragglers;
  // The least that they come to in any step.
  TruthTimes least() const;
};

struct Scenario {
  std::string path;  // as given by the user; "" for an inline text
  std::string text;  // the source, after --set, for log headers
  HardwareProfile machine;
  std::shared_ptr<const HardwareProfile> whole_machine;  // without limits, and not shared by ranks; null: not read
  Limits limits;
  ProductOptions product;
  WorkloadOptions workload;
  ParallelOptions parallel;
  OptimizerOptions optimizer;
  std::string data_text = "corpus";   // the installed corpus, or a path (gpt, bert)
  std::string data_images;            // mlp: a folder of MNIST IDX files; "" means the installed digits
  std::string data_tokens;            // a file of token numbers alone, in place of a text; "": none
  std::int64_t data_token_bytes = 0;  // of one of them: 2 or 4; 0: as few as the vocabulary needs
  std::string data_tokenizer;         // a tokenizer.json that makes tokens of the text; "": bytes are tokens
  std::string data_graph;             // a graph's nodes, edges, features and labels; "": none
  std::string data_manifest;          // a CSV of samples with pictures, sounds and captions; "": none
  PipelineOptions pipeline;
  std::string weights;  // where training begins: a safetensors file, its index, or their folder; "": anew
  ValidationOptions validation;
  PolicyOptions policy;
  std::vector<PolicySwitch> switches;  // in order of their steps
  Truth truth;
  CheckpointOptions checkpoint;
  std::int64_t watchdog_ns = 60'000'000'000;  // that a real run may stand still
  std::int32_t steps = 4;
  // A resumed run: the training steps that came before it, and the checkpoint that holds their outcome. No keys of the
  // file: --resume sets them, and log headers keep first_step. A replay loads nothing and names no folder.
  std::int32_t first_step = 0;
  std::string resume_folder;
  std::uint64_t seed = 0;
  std::vector<std::string> warnings;  // what is odd but allowed, "key: text", for people
};

}  // namespace tandem
