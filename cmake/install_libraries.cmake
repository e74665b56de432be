# Copies to LIBRARIES, below the prefix, what PROGRAMS load from a Python environment (LibTorch, HiGHS, CUDA's libraries).
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${PROGRAMS} RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing
  CONFLICTING_DEPENDENCIES_PREFIX twice POST_INCLUDE_REGEXES "/(site|dist)-packages/" POST_EXCLUDE_REGEXES "^/")
file(INSTALL DESTINATION ${CMAKE_INSTALL_PREFIX}/${LIBRARIES} TYPE SHARED_LIBRARY FOLLOW_SYMLINK_CHAIN FILES ${found})
# Where two folders have one name, the copies are the same: a wheel's own beside another's.
foreach(name IN LISTS twice_FILENAMES)
  list(GET twice_${name} 0 first)
  if(first MATCHES "/(site|dist)-packages/")
    file(INSTALL DESTINATION ${CMAKE_INSTALL_PREFIX}/${LIBRARIES} TYPE SHARED_LIBRARY FOLLOW_SYMLINK_CHAIN FILES ${first})
  endif()
endforeach()
# cuDNN and NVRTC load parts of theirs by name: they stand beside those that are linked.
foreach(library IN LISTS found)
  if(library MATCHES "/lib(cudnn|nvrtc)\\.so")
    get_filename_component(folder ${library} DIRECTORY)
    file(GLOB parts ${folder}/libcudnn*.so* ${folder}/libnvrtc*.so*)
    file(INSTALL DESTINATION ${CMAKE_INSTALL_PREFIX}/${LIBRARIES} TYPE SHARED_LIBRARY FILES ${parts})
  endif()
endforeach()
