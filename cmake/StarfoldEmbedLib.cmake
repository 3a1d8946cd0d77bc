# The standard library, lib/**.fold, is compiled into the C++ library, so that it is found both from the
# build tree and after installation. See starfold/base/embedded_lib.h for the other end.

function(starfold_embed_lib result)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lib/*.fold)
  list(SORT files)
  set(names "")
  foreach(file IN LISTS files)
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/lib ${file})
    string(REGEX REPLACE "\\.fold$" "" name ${name})
    list(APPEND names ${name})
  endforeach()
  # The names are part of the command, so that removing a module reruns it too.
  list(JOIN names "," names)
  set(script ${CMAKE_SOURCE_DIR}/cmake/embed_lib.cmake)
  set(output ${CMAKE_BINARY_DIR}/generated/embedded_lib.cpp)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DLIB_DIR=${CMAKE_SOURCE_DIR}/lib -DNAMES=${names} -DOUTPUT=${output} -P ${script}
    DEPENDS ${files} ${script}
    COMMENT "Embedding the standard library"
    VERBATIM)
  set(${result} ${output} PARENT_SCOPE)
endfunction()
