#include "bindings/errors.hpp"

#include <nanobind/nanobind.h>

#include "core/base/errors.hpp"

namespace nb = nanobind;

namespace tandem {
namespace {

void raise(const char* name, const std::exception& error) {
  const nb::object type = nb::module_::import_("tandem.errors").attr(name);
  PyErr_SetString(type.ptr(), error.what());
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const ConfigError& error) {
    raise("ConfigError", error);
  } catch (const DoesNotFit& error) {
    raise("DoesNotFit", error);
  } catch (const DeviceError& error) {
    raise("DeviceError", error);
  }
}

}  // namespace

void translate_errors() { nb::register_exception_translator(&translate); }

}  // namespace tandem
