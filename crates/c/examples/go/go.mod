module palmette.example/mask

go 1.19
