# The library and the command of another build folder, for a wheel in seconds: tests use those of `make build`.

get_filename_component(prebuilt ${STARFOLD_PREBUILT} ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
if(NOT EXISTS ${prebuilt}/libstarfold.a OR NOT EXISTS ${prebuilt}/starfold)
  message(FATAL_ERROR "STARFOLD_PREBUILT: ${prebuilt} has no libstarfold.a and starfold; tools/build makes them")
endif()
add_library(starfold STATIC IMPORTED GLOBAL)
set_target_properties(starfold PROPERTIES IMPORTED_LOCATION ${prebuilt}/libstarfold.a)
target_include_directories(starfold INTERFACE ${CMAKE_SOURCE_DIR})
target_link_libraries(starfold INTERFACE starfold_compiler starfold_dependencies starfold_duckdb)
install(PROGRAMS ${prebuilt}/starfold DESTINATION bin)
