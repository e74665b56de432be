# `make install`: the programs that this build has, the libraries of .venv that they load, and the files that they read, so
# that they run without the checkout. Debian's libraries are not copied: apt-packages.txt names their packages.
include(GNUInstallDirs)
set(LIBRARIES ${CMAKE_INSTALL_LIBDIR}/tandem)
file(RELATIVE_PATH from_programs /${CMAKE_INSTALL_BINDIR} /${LIBRARIES})
# core/scenario/dirs.cpp looks for files in this folder beside an installed program.
set(HOME_FOLDER ${CMAKE_INSTALL_DATADIR}/tandem)
add_custom_target(tandem_programs)

# Those of the programs that this build has, and what they load from .venv.
function(tandem_install COMPONENT)
  set(files "")
  foreach(program IN LISTS ARGN)
    if(TARGET ${program})
      set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/${from_programs}")
      install(TARGETS ${program} RUNTIME COMPONENT ${COMPONENT})
      add_dependencies(tandem_programs ${program})
      list(APPEND files "$<TARGET_FILE:${program}>")
    endif()
  endforeach()
  if(files)
    install(CODE "set(PROGRAMS \"${files}\")\nset(LIBRARIES \"${LIBRARIES}\")" COMPONENT ${COMPONENT})
    install(SCRIPT cmake/install_libraries.cmake COMPONENT ${COMPONENT})
  endif()
endfunction()

tandem_install(simulator tandem tandem-simulate tandem-plan tandem-train-policy tandem-monitor)
tandem_install(cpu tandem-train tandem-calibrate)
tandem_install(gpu tandem-train-cuda tandem-calibrate-cuda)
# The native halves of the Python module lie beside its files, where it looks for them.
file(RELATIVE_PATH from_module /${HOME_FOLDER}/python/tandem /${LIBRARIES})
foreach(module IN ITEMS _tandem_sim _tandem _tandem_cuda)
  if(TARGET ${module})
    set_target_properties(${module} PROPERTIES INSTALL_RPATH "$ORIGIN/${from_module}")
    set(component cpu)
    if(module STREQUAL _tandem_cuda)
      set(component gpu)
    elseif(module STREQUAL _tandem_sim)
      set(component simulator)
    endif()
    install(TARGETS ${module} LIBRARY DESTINATION ${HOME_FOLDER}/python/tandem COMPONENT ${component})
    add_dependencies(tandem_programs ${module})
  endif()
endforeach()
install(DIRECTORY python DESTINATION ${HOME_FOLDER} COMPONENT simulator PATTERN __pycache__ EXCLUDE)
install(DIRECTORY hardware_profiles models products scenarios DESTINATION ${HOME_FOLDER} COMPONENT simulator
  FILES_MATCHING PATTERN "*.yaml")
# Its licence goes along with the library that is copied.
get_filename_component(highs_folder ${HIGHS_LIBRARY} DIRECTORY)
install(FILES ${highs_folder}/../share/doc/HIGHS/LICENSE.txt DESTINATION ${HOME_FOLDER}/licences RENAME HiGHS.txt
  COMPONENT simulator OPTIONAL)
if(TANDEM_LICENCES)  # a folder of scripts/wheel.sh; Python keeps licences beside a wheel's metadata
  install(DIRECTORY ${TANDEM_LICENCES}/ DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT simulator)
endif()
install(FILES docs/scenario.schema.json docs/profile.schema.json DESTINATION ${HOME_FOLDER}/docs COMPONENT simulator)
if(TANDEM_WITH_RUNTIME)  # the data to train on, which scripts/setup_corpus.sh makes
  install(FILES .cache/corpus.txt .cache/digits.csv DESTINATION ${HOME_FOLDER}/.cache COMPONENT cpu OPTIONAL)
endif()
if(NOT SKBUILD)  # a wheel has neither place nor use for these
  if(NOT CMAKE_CROSSCOMPILING)  # the program tells them itself
    install(CODE "set(PROGRAM \"$<TARGET_FILE:tandem>\")\nset(FOLDER \"${CMAKE_BINARY_DIR}/manual\")
set(MAN \"${CMAKE_INSTALL_MANDIR}\")\nset(DATA \"${CMAKE_INSTALL_DATADIR}\")" COMPONENT manual)
    install(SCRIPT cmake/install_manual.cmake COMPONENT manual)
  endif()
  # Last, after all that is installed.
  install(CODE "set(RECORD \"${HOME_FOLDER}/installed_files.txt\")" ALL_COMPONENTS)
  install(SCRIPT cmake/install_record.cmake ALL_COMPONENTS)
endif()
