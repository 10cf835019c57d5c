# add_soak_test(name COMMAND): the full length of a test of endurance. It takes about an hour and has the
# label `soak`, which tests/run.sh runs only with --all.
function(add_soak_test name)
  cohort_add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS soak TIMEOUT 28800 PROCESSORS 2
    ENVIRONMENT "SOAK_SMALL=10000000;SOAK_LARGE=10000;OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
endfunction()
