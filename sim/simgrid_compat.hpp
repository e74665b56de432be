// The differences between SimGrid 3.32 (Debian) and 4.1, in one place. Nothing else asks for SimGrid's version.
#pragma once

#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

// Does not compile before s4u.hpp.
#include <simgrid/version.h>

namespace tandem::simgrid_compat {

#if SIMGRID_VERSION >= 40000
inline constexpr const char* kTimePrecision = "precision/timing";
inline constexpr const char* kAmountPrecision = "precision/work-amount";

inline simgrid::s4u::NetZone* make_root(simgrid::s4u::Engine& engine) { return engine.get_netzone_root(); }
inline simgrid::s4u::NetZone* make_zone(simgrid::s4u::NetZone* parent, const std::string& name) {
  return parent->add_netzone_full(name);
}
inline simgrid::s4u::Host* make_host(simgrid::s4u::NetZone* zone, const std::string& name, double speed) {
  return zone->add_host(name, speed)->seal();
}
inline simgrid::s4u::Link* make_link(simgrid::s4u::NetZone* zone, const std::string& name, double bandwidth) {
  return zone->add_link(name, bandwidth)->set_latency(0)->seal();
}
inline void make_route(simgrid::s4u::NetZone* zone, simgrid::s4u::Host* from, simgrid::s4u::Host* to,
                       const std::vector<const simgrid::s4u::Link*>& links) {
  std::vector<simgrid::s4u::LinkInRoute> route;
  for (const auto* link : links) route.emplace_back(link);
  zone->add_route(from, to, route, false);
}
template <typename Callback>
void on_completion(const Callback& callback) {
  simgrid::s4u::Comm::on_completion_cb([callback](const simgrid::s4u::Comm& done) { callback(done); });
}
#else
inline constexpr const char* kTimePrecision = "surf/precision";
inline constexpr const char* kAmountPrecision = "maxmin/precision";

inline simgrid::s4u::NetZone* make_root(simgrid::s4u::Engine&) { return simgrid::s4u::create_full_zone("machines"); }
inline simgrid::s4u::NetZone* make_zone(simgrid::s4u::NetZone* parent, const std::string& name) {
  return simgrid::s4u::create_full_zone(name)->set_parent(parent);
}
inline simgrid::s4u::Host* make_host(simgrid::s4u::NetZone* zone, const std::string& name, double speed) {
  return zone->create_host(name, speed)->seal();
}
inline simgrid::s4u::Link* make_link(simgrid::s4u::NetZone* zone, const std::string& name, double bandwidth) {
  return zone->create_link(name, bandwidth)->set_latency(0)->seal();
}
inline void make_route(simgrid::s4u::NetZone* zone, simgrid::s4u::Host* from, simgrid::s4u::Host* to,
                       const std::vector<const simgrid::s4u::Link*>& links) {
  std::vector<simgrid::s4u::LinkInRoute> route;
  for (const auto* link : links) route.emplace_back(link);
  zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
}
template <typename Callback>
void on_completion(const Callback& callback) {
  simgrid::s4u::Activity::on_completion_cb([callback](const simgrid::s4u::Activity& done) { callback(done); });
}
#endif

}  // namespace tandem::simgrid_compat
