# Installs what the program PROGRAM says of itself: its manual page, and what shells complete it by.
foreach(file IN ITEMS ${MAN}/man1/tandem.1=man ${DATA}/bash-completion/completions/tandem=completion,bash
                      ${DATA}/zsh/site-functions/_tandem=completion,zsh ${DATA}/fish/vendor_completions.d/tandem.fish=completion,fish)
  string(REGEX REPLACE "=.*" "" to "${file}")
  string(REGEX REPLACE ".*=" "" words "${file}")
  string(REPLACE "," ";" words "${words}")
  get_filename_component(name "${to}" NAME)
  get_filename_component(folder "${to}" DIRECTORY)
  file(MAKE_DIRECTORY "${FOLDER}")
  execute_process(COMMAND "${PROGRAM}" ${words} OUTPUT_FILE "${FOLDER}/${name}" COMMAND_ERROR_IS_FATAL ANY)
  file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${folder}" TYPE FILE FILES "${FOLDER}/${name}")
endforeach()
