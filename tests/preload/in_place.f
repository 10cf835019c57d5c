! Collectives with MPI_IN_PLACE, which in Fortran is the address of a
! variable of the MPI library and not C's constant, by mpif.h:
! a library between that takes it for a buffer reads the wrong data.
! Each result is compared exactly; prints ok, or stops with status 1.
! Buffers of several types need -fallow-argument-mismatch of gfortran.

      program in_place
      implicit none
      include 'mpif.h'
      integer, parameter :: n = 1000, most = 64
      integer rank, ranks, ierr, i, j, root, wrong, total
      integer one(n), all(n * most)
      double precision sums(n)
      integer unused(1)

      wrong = 0
      unused(1) = -1
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierr)
      if (ranks .gt. most) call MPI_ABORT(MPI_COMM_WORLD, 2, ierr)
      root = ranks - 1

! The ranks' sum of i + rank.
      total = ranks * (ranks - 1) / 2
      do i = 1, n
        one(i) = i + rank
        sums(i) = i + rank
      end do
      call MPI_ALLREDUCE(MPI_IN_PLACE, one, n, MPI_INTEGER,
     &  MPI_SUM, MPI_COMM_WORLD, ierr)
      call MPI_ALLREDUCE(MPI_IN_PLACE, sums, n,
     &  MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
      do i = 1, n
        if (one(i) .ne. i * ranks + total) wrong = wrong + 1
        if (sums(i) .ne. dble(i * ranks + total)) wrong = wrong + 1
      end do
      call tell('allreduce')

! Rank 0 has the sum, the others what they had.
      do i = 1, n
        one(i) = i + rank
      end do
      if (rank .eq. 0) then
        call MPI_REDUCE(MPI_IN_PLACE, one, n, MPI_INTEGER, MPI_SUM,
     &      0, MPI_COMM_WORLD, ierr)
        do i = 1, n
          if (one(i) .ne. i * ranks + total) wrong = wrong + 1
        end do
      else
        call MPI_REDUCE(one, unused, n, MPI_INTEGER, MPI_SUM,
     &      0, MPI_COMM_WORLD, ierr)
        do i = 1, n
          if (one(i) .ne. i + rank) wrong = wrong + 1
        end do
      end if
      call tell('reduce')

! Rank j's part is i + 10000 * j.
      all = -1
      do i = 1, n
        all(rank * n + i) = i + 10000 * rank
        one(i) = i + 10000 * rank
      end do
      call MPI_ALLGATHER(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all,
     &  n, MPI_INTEGER, MPI_COMM_WORLD, ierr)
      do j = 0, ranks - 1
        do i = 1, n
          if (all(j * n + i) .ne. i + 10000 * j) wrong = wrong + 1
        end do
      end do
      call tell('allgather')

      all = -1
      do i = 1, n
        all(rank * n + i) = i + 10000 * rank
        one(i) = i + 10000 * rank
      end do
      if (rank .eq. root) then
        call MPI_GATHER(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, n,
     &      MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
        do j = 0, ranks - 1
          do i = 1, n
            if (all(j * n + i) .ne. i + 10000 * j) wrong = wrong + 1
          end do
        end do
      else
        call MPI_GATHER(one, n, MPI_INTEGER, unused, n,
     &      MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
      end if
      call tell('gather')

      one = -1
      if (rank .eq. root) then
        do j = 0, ranks - 1
          do i = 1, n
            all(j * n + i) = i + 10000 * j
          end do
        end do
        call MPI_SCATTER(all, n, MPI_INTEGER, MPI_IN_PLACE, n,
     &      MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
        do j = 0, ranks - 1
          do i = 1, n
            if (all(j * n + i) .ne. i + 10000 * j) wrong = wrong + 1
          end do
        end do
      else
        call MPI_SCATTER(unused, n, MPI_INTEGER, one, n,
     &      MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
        do i = 1, n
          if (one(i) .ne. i + 10000 * rank) wrong = wrong + 1
        end do
      end if
      call tell('scatter')

! To rank j goes i + 10000 * rank + 1000000 * j.
      do j = 0, ranks - 1
        do i = 1, n
          all(j * n + i) = i + 10000 * rank + 1000000 * j
        end do
      end do
      call MPI_ALLTOALL(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all,
     &  n, MPI_INTEGER, MPI_COMM_WORLD, ierr)
      do j = 0, ranks - 1
        do i = 1, n
          if (all(j * n + i) .ne. i + 10000 * j + 1000000 * rank)
     &        wrong = wrong + 1
        end do
      end do
      call tell('alltoall')

! Block j of the ranks' sum goes to rank j, to the beginning.
      do j = 0, ranks - 1
        do i = 1, n
          all(j * n + i) = i + rank + 10000 * j
        end do
      end do
      call MPI_REDUCE_SCATTER_BLOCK(MPI_IN_PLACE, all, n,
     &  MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
      do i = 1, n
        j = (i + 10000 * rank) * ranks + total
        if (all(i) .ne. j) wrong = wrong + 1
      end do
      call tell('reduce_scatter_block')

! Without MPI_IN_PLACE: a broadcast has one buffer.
      one = -1
      if (rank .eq. root) then
        do i = 1, n
          one(i) = 3 * i
        end do
      end if
      call MPI_BCAST(one, n, MPI_INTEGER, root, MPI_COMM_WORLD,
     &  ierr)
      do i = 1, n
        if (one(i) .ne. 3 * i) wrong = wrong + 1
      end do
      call tell('bcast')

      call MPI_ALLREDUCE(wrong, total, 1, MPI_INTEGER, MPI_SUM,
     &  MPI_COMM_WORLD, ierr)
      if (unused(1) .ne. -1) total = total + 1
      if (rank .eq. 0 .and. total .eq. 0) print '(a)', 'ok'
      call MPI_FINALIZE(ierr)
      if (total .ne. 0) stop 1

      contains

! Names a collective after which more elements are wrong than before.
      subroutine tell(name)
      character(*), intent(in) :: name
      integer, save :: before = 0
      if (wrong .ne. before) then
        print '(a, i0, 3a, i0, a)', 'rank ', rank, ': ', name,
     &      ': ', wrong - before, ' elements are wrong'
        before = wrong
      end if
      end subroutine tell
      end program in_place
