# Registration by file: every runtime/bodies/*.cpp must define std::span<const BodyEntry> <stem>_bodies(). The generated
# table names each one, so that a file without it does not link.
function(tandem_bodies FILES OUT)
  set(declarations "")
  set(entries "")
  foreach(file IN LISTS FILES)
    get_filename_component(stem ${file} NAME_WE)
    string(APPEND declarations "std::span<const BodyEntry> ${stem}_bodies();\n")
    string(APPEND entries "      ${stem}_bodies(),\n")
  endforeach()
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/bodies.cpp.in ${OUT} @ONLY)
endfunction()
