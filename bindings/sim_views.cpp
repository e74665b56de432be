#include "bindings/sim_views.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/engine_names.hpp"

namespace nb = nanobind;

namespace tandem {
namespace {

constexpr double kNsASecond = 1e9, kMostSeconds = 1e9;

[[noreturn]] void refuse(const std::string& text) { throw nb::value_error(text.c_str()); }

std::vector<std::string> engines_of(const Op& op) {
  std::vector<std::string> names;
  for (int e = 0; e < kEngineCount; ++e)
    if (op.may_run_on(static_cast<Engine>(e))) names.emplace_back(name_of(static_cast<Engine>(e)));
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Engine engine_named(const std::string& name) {
  if (const std::optional<Engine> engine = find_engine(name)) return *engine;
  std::vector<std::string> names;
  for (int e = 0; e < kEngineCount; ++e) names.emplace_back(name_of(static_cast<Engine>(e)));
  refuse("engine: is '" + name + "'; allowed: " + listed(names));
}

// "": where the op runs unless told otherwise.
Engine engine_for(const PythonOp& op, const std::string& name) {
  const Engine engine = name.empty() ? op.op.engine : engine_named(name);
  if (!op.op.may_run_on(engine)) refuse(op.name + " cannot run on " + name + "; allowed: " + listed(engines_of(op.op)));
  return engine;
}

Engine copy_engine(const std::string& name) {
  const Engine engine = engine_named(name);
  for (const Engine one : {Engine::H2D, Engine::D2H, Engine::H2DSmall, Engine::D2HSmall, Engine::DiskRead,
                           Engine::DiskWrite, Engine::Compute})
    if (engine == one) return engine;
  refuse("engine: " + name + " does not copy; allowed: h2d, d2h, h2d_small, d2h_small, disk_read, disk_write, compute");
}

PythonValue python_value(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  return {id, value.version, value.bytes, python_tensor(graph, value.tensor)};
}

// Of an op that is not issued: what it reads and writes is there.
PythonOp python_op(const Graph& graph, OpId id) {
  const Op& op = graph.op(id);
  PythonOp out{id, graph.op_name(id), graph.work_of(op).flops(), op, {}, {}};
  for (const ValueId read : op.reads) out.reads.push_back(python_value(graph, read));
  for (const Write& write : op.writes) out.writes.push_back(python_value(graph, write.value));
  return out;
}

std::string name_of_value(const PythonValue& value) {
  return value.tensor.tensor->name + "@" + std::to_string(value.version);
}

std::string reply_name(Reply reply) {
  return reply == Reply::Issued ? "issued" : reply == Reply::NotReady ? "not_ready" : "no_room";
}

std::vector<PythonOp> ops(const View& view, std::span<const OpId> ids, std::size_t most) {
  std::vector<PythonOp> out;
  for (const OpId id : ids.first(std::min(ids.size(), most))) out.push_back(python_op(view.graph(), id));
  return out;
}

std::vector<PythonTensor> tensors(const View& view) {
  std::vector<PythonTensor> out;
  for (TensorId id = 0; id < view.graph().tensor_count(); ++id) out.push_back(python_tensor(view.graph(), id));
  return out;
}

std::optional<PythonValue> latest(const View& view, const PythonTensor& tensor) {
  const ValueId id = tensor.tensor->latest;
  if (id == kNone || view.over(id)) return std::nullopt;
  return python_value(view.graph(), id);
}

double run_s(const View& view, const PythonOp& op, const std::string& engine) {
  return static_cast<double>(view.estimate().run_ns(view.graph(), op.op.work, engine_for(op, engine))) / kNsASecond;
}

double copy_s(const View& view, std::int64_t bytes, const std::string& engine) {
  if (bytes < 0) refuse("bytes: is " + std::to_string(bytes) + "; allowed: 0 or more");
  return static_cast<double>(view.estimate().copy_ns(copy_engine(engine), bytes)) / kNsASecond;
}

// Those that have been issued may be forgotten: the graph is not asked about them.
Reply run(const View& view, Decisions& decisions, const PythonOp& op, const std::string& engine) {
  const Engine on = engine_for(op, engine);
  return view.issued(op.id) ? Reply::Issued : decisions.run(op.id, on);
}

Reply run_part(const View& view, Decisions& decisions, const PythonOp& op, std::int64_t first_byte, std::int64_t bytes,
               const std::string& engine) {
  const Engine on = engine_for(op, engine);
  const std::int64_t all = op.writes.empty() ? 0 : op.writes.front().bytes;
  if (!op.op.divisible && (first_byte != 0 || bytes != all))
    refuse(op.name + " is not divisible; allowed: run(op, engine)");
  const std::int64_t end = first_byte + bytes, cut = op.op.cut_bytes;
  if (first_byte < 0 || bytes <= 0 || end > all || first_byte % cut != 0 || (end % cut != 0 && end != all))
    refuse(op.name + ": bytes " + std::to_string(first_byte) + " to " + std::to_string(end) +
           "; allowed: within 0 to " + std::to_string(all) + ", in multiples of " + std::to_string(cut) +
           " or to the end");
  return view.issued(op.id) ? Reply::Issued : decisions.run_part(op.id, first_byte, bytes, on);
}

template <typename T>
void add_identity(nb::class_<T>& type, std::string (*name)(const T&)) {
  type.def_ro("id", &T::id)
      .def_prop_ro("name", name)
      .def("__repr__", name)
      .def("__hash__", [](const T& of) { return static_cast<std::int64_t>(of.id); })
      .def("__eq__",
           [](const T& a, const nb::object& b) { return nb::isinstance<T>(b) && nb::cast<T&>(b).id == a.id; });
}

void add_graph(nb::module_& m) {
  nb::class_<PythonTensor> tensor(m, "Tensor");
  add_identity<PythonTensor>(tensor, [](const PythonTensor& t) { return t.tensor->name; });
  tensor.def_prop_ro("role", [](const PythonTensor& t) { return name_of(t.tensor->reported_role()).data(); })
      .def_prop_ro("bytes", [](const PythonTensor& t) { return t.tensor->bytes; })
      .def_prop_ro("layer", [](const PythonTensor& t) { return t.tensor->layer; })
      .def_prop_ro("persistent", [](const PythonTensor& t) { return t.tensor->persistent; });
  nb::class_<PythonValue> value(m, "Value");
  add_identity<PythonValue>(value, &name_of_value);
  value.def_ro("version", &PythonValue::version)
      .def_ro("bytes", &PythonValue::bytes)
      .def_prop_ro("tensor", [](const PythonValue& v) { return v.tensor; });
  nb::class_<PythonOp> op(m, "Op");
  add_identity<PythonOp>(op, [](const PythonOp& o) { return o.name; });
  op.def_prop_ro("phase", [](const PythonOp& o) { return name_of(o.op.phase).data(); })
      .def_prop_ro("step", [](const PythonOp& o) { return o.op.step; })
      .def_prop_ro("micro_batch", [](const PythonOp& o) { return o.op.micro_batch; })
      .def_prop_ro("layer", [](const PythonOp& o) { return o.op.layer; })
      .def_prop_ro("engine", [](const PythonOp& o) { return name_of(o.op.engine).data(); })
      .def_prop_ro("engines", [](const PythonOp& o) { return engines_of(o.op); })
      .def_prop_ro("flops", [](const PythonOp& o) { return o.flops; })
      .def_prop_ro("workspace_bytes", [](const PythonOp& o) { return o.op.workspace_bytes; })
      .def_prop_ro("divisible", [](const PythonOp& o) { return o.op.divisible; })
      .def_prop_ro("cut_bytes", [](const PythonOp& o) { return o.op.cut_bytes; })
      .def_prop_ro("reads", [](const PythonOp& o) { return o.reads; })
      .def_prop_ro("writes", [](const PythonOp& o) { return o.writes; });
}

void add_view(nb::module_& m) {
  using Name = const std::string&;
  using O = const PythonOp&;
  using V = const PythonValue&;
  nb::class_<View>(m, "View")
      .def_prop_ro("rank", &View::rank)
      .def("observed", [](const View& view) { return static_cast<double>(view.observed().ns) / kNsASecond; })
      .def("tensors", &tensors)
      .def("latest", &latest, nb::arg("tensor"))
      .def(
          "compute_program", [](const View& view, std::size_t most) { return ops(view, view.compute_program(), most); },
          nb::arg("most") = 64)
      .def("ready_optimizer_ops",
           [](const View& view) { return ops(view, view.ready_optimizer_ops(), view.ready_optimizer_ops().size()); })
      .def("issued", [](const View& view, O op) { return view.issued(op.id); })
      .def("issuable", [](const View& view, O op) { return view.issued(op.id) || view.issuable(op.id); })
      .def("finished", [](const View& view, O op) { return view.finished(op.id); })
      .def("over", [](const View& view, V value) { return view.over(value.id); })
      .def("valid", [](const View& view, V value, Name tier) { return view.valid(value.id, tier_named(tier)); })
      .def("arrived", [](const View& view, V value, Name tier) { return view.arrived(value.id, tier_named(tier)); })
      .def("queued", [](const View& view, Name engine) { return view.queued(engine_named(engine)); })
      .def("computing", &View::computing)
      .def("free_bytes", [](const View& view, Name tier) { return view.free_bytes(tier_named(tier)); })
      .def("capacity_bytes", [](const View& view, Name tier) { return view.capacity_bytes(tier_named(tier)); })
      .def("missing_bytes",
           [](const View& view, O op) { return view.issued(op.id) ? std::int64_t{0} : view.missing_bytes(op.id); })
      .def("run_s", &run_s, nb::arg("op"), nb::arg("engine") = "")
      .def("copy_s", &copy_s, nb::arg("bytes"), nb::arg("engine"));
}

}  // namespace

PythonTensor python_tensor(const Graph& graph, TensorId id) { return {id, &graph.tensor(id)}; }

Tier tier_named(const std::string& name) {
  if (name == "host") return Tier::HostPinned;
  for (int t = 0; t < kTierCount; ++t)
    if (name_of(static_cast<Tier>(t)) == name) return static_cast<Tier>(t);
  refuse("tier: is '" + name + "'; allowed: device, host, host_pageable, disk");
}

void add_views(nb::module_& m) {
  add_graph(m);
  add_view(m);
  using V = const PythonValue&;
  nb::class_<PythonDecisions>(m, "Decisions")
      .def(
          "run",
          [](PythonDecisions& d, const PythonOp& op, const std::string& engine) {
            return reply_name(run(d.view, d.decisions, op, engine));
          },
          nb::arg("op"), nb::arg("engine") = "")
      .def(
          "run_part",
          [](PythonDecisions& d, const PythonOp& op, std::int64_t first_byte, std::int64_t bytes,
             const std::string& engine) {
            return reply_name(run_part(d.view, d.decisions, op, first_byte, bytes, engine));
          },
          nb::arg("op"), nb::arg("first_byte"), nb::arg("bytes"), nb::arg("engine") = "")
      .def(
          "copy",
          [](PythonDecisions& d, V value, const std::string& to) {
            return reply_name(d.decisions.copy(value.id, tier_named(to)));
          },
          nb::arg("value"), nb::arg("to"))
      .def(
          "release",
          [](PythonDecisions& d, V value, const std::string& tier) {
            return reply_name(d.decisions.release(value.id, tier_named(tier)));
          },
          nb::arg("value"), nb::arg("tier"))
      .def(
          "keep",
          [](PythonDecisions& d, V value, const std::string& tier) { d.decisions.keep(value.id, tier_named(tier)); },
          nb::arg("value"), nb::arg("tier"))
      .def(
          "wake_at",
          [](PythonDecisions& d, double seconds) {
            if (!(seconds >= 0 && seconds < kMostSeconds)) refuse("seconds: allowed: 0 or more, below 1e9");
            d.decisions.wake_at({static_cast<std::int64_t>(std::ceil(seconds * kNsASecond))});
          },
          nb::arg("seconds"));
}

}  // namespace tandem
